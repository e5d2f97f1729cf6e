"""Metrics of sequences of tags: one list of tags per sentence."""

from __future__ import annotations

from collections.abc import Sequence

from plmcore._core import ArgumentError, KindError
from plmcore.evaluate.needed import needed
from plmcore.evaluate.pairs import f_score, paired

Tags = Sequence[Sequence[str]]
Span = tuple[str, tuple[tuple[int, int], ...]]  # a role and the stretches of words that fill it, [start, end)


def token_accuracy(predictions: Tags, references: Tags) -> float:
    """The share of tokens whose tag is right, over all sentences."""
    predictions, references = _sentences("token_accuracy", predictions, references)
    tokens = sum(map(len, references))
    if tokens == 0:
        raise ArgumentError("token_accuracy: the sentences have no tokens")
    return sum(p == r for a, b in zip(predictions, references) for p, r in zip(a, b)) / tokens


def entities(predictions: Tags, references: Tags) -> dict[str, float]:
    """Precision, recall and F1 of named entities or chunks, micro-averaged, as conlleval counts them.

    Tags are O, B-TYPE, I-TYPE (also E- and S-). An entity is right when its type, first and last word are. As
    in conlleval an I- that follows O or another type begins an entity.
    """
    predictions, references = _sentences("entities", predictions, references)
    labels = needed("seqeval.metrics.sequence_labeling", "entities")
    found, wanted = (set(labels.get_entities(side)) for side in (predictions, references))
    return f_score(len(found & wanted), len(found), len(wanted))


def entities_by_type(predictions: Tags, references: Tags) -> dict[str, dict[str, float]]:
    """The same for every type, with `support`, the number of entities in the references."""
    predictions, references = _sentences("entities_by_type", predictions, references)
    labels = needed("seqeval.metrics.sequence_labeling", "entities_by_type")
    found, wanted = (set(labels.get_entities(side)) for side in (predictions, references))
    scores = {}
    for kind in sorted({entity[0] for entity in found | wanted}):
        p, r = ({e for e in side if e[0] == kind} for side in (found, wanted))
        scores[kind] = {**f_score(len(p & r), len(p), len(r)), "support": len(r)}
    return scores


def roles(predictions: Tags, references: Tags) -> dict[str, float]:
    """Precision, recall and F1 of semantic roles, as the CoNLL-2005 scorer counts them.

    One sequence of B- and I- tags per predicate.

    The verb itself (V) does not count; C-X continues the last X before it, and both must be right together.
    """
    predictions, references = _sentences("roles", predictions, references)
    hits = predicted = wanted = 0
    for p, r in zip(predictions, references):
        found, right = spans(p), spans(r)
        hits, predicted, wanted = hits + len(found & right), predicted + len(found), wanted + len(right)
    return f_score(hits, predicted, wanted)


def spans(tags: Sequence[str]) -> set[Span]:
    """The arguments of one predicate: role, and its stretches of words."""
    plain: list[tuple[str, int, int]] = []
    for i, tag in enumerate(tags):
        start, _, role = tag.partition("-")
        if tag == "O":
            continue
        if start == "I" and plain and plain[-1][0] == role and plain[-1][2] == i:
            plain[-1] = (role, plain[-1][1], i + 1)
        elif start in ("B", "I") and role:
            plain.append((role, i, i + 1))
        else:
            raise ArgumentError(f"roles: a tag is O, B-ROLE or I-ROLE, got {tag!r}")
    arguments: list[tuple[str, list[tuple[int, int]]]] = []
    for role, first, end in plain:
        whole = role.removeprefix("C-")
        before = [a for a in arguments if a[0] == whole]
        if role != whole and before:
            before[-1][1].append((first, end))
        else:
            arguments.append((whole, [(first, end)]))
    return {(role, tuple(stretches)) for role, stretches in arguments if role != "V"}


def _sentences(metric: str, predictions: Tags, references: Tags) -> tuple[list[list[str]], list[list[str]]]:
    predictions, references = paired(metric, predictions, references)
    for i, (p, r) in enumerate(zip(predictions, references)):
        if isinstance(p, str) or isinstance(r, str):
            raise KindError(f"{metric}: a sentence is a list of tags, sentence {i} is one str")
        if len(p) != len(r):
            raise ArgumentError(f"{metric}: sentence {i} has {len(r)} tokens and {len(p)} predicted tags")
    return [list(p) for p in predictions], [list(r) for r in references]
