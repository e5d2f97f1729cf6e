"""Evaluation without training: how probable a model finds given continuations of a context (GPT-2, GPT-3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.evaluate import scoring
from plmcore.evaluate.likelihood import WINDOW, Perplexity, prefix
from plmcore.evaluate.scoring import NONE, Row

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel

NORMALISATIONS = ("sum", "tokens", "characters", "bytes", "context")


@dataclass(frozen=True)
class Continuation:
    log_prob: float  # ln p(continuation | context), summed over its tokens
    tokens: int
    greedy: bool  # would greedy decoding write it?


@dataclass(frozen=True)
class Choices:
    """predictions [n]; scores: of each record's choices; accuracy: None where the records have no labels."""

    predictions: np.ndarray
    scores: list[np.ndarray]
    accuracy: float | None


@dataclass(frozen=True)
class LastWords:
    """accuracy: the share of texts whose last word the model writes itself; perplexity: per last word, so
    e^(mean -ln p(word)).
    """

    accuracy: float
    perplexity: float
    right: np.ndarray  # bool [n]
    log_probs: np.ndarray  # float64 [n]


def continuations(
    lm: LanguageModel,
    pairs: Iterable[tuple[str, str]],
    *,
    start: int | None = None,
    batch_tokens: int = scoring.BATCH_TOKENS,
) -> list[Continuation]:
    """Scores continuations, given as (context, continuation). A continuation includes its leading space.

    The two are tokenised as one text, and what differs from the tokens of the context alone is scored. A
    context that does not fit loses its beginning. start: the id that stands before the context, which an
    empty context needs. Of a sequence-to-sequence model the context is the source.
    """
    kind = scoring.kind_of(lm)
    if lm.tokenizer is None:
        raise ArgumentError(
            "continuations: this model has no tokenizer; load it from a directory with tokenizer files"
        )
    if kind == "masked":
        raise ArgumentError(
            "continuations: a masked model does not continue texts; load it with a causal-lm or "
            "seq2seq-lm head"
        )
    rows = [
        _seq2seq_row(lm, *pair) if kind == "seq2seq" else _causal_row(lm, kind, start, *pair)
        for pair in pairs
    ]
    order = sorted(range(len(rows)), key=lambda i: -rows[i].size)  # a batch of equals has no padding
    found: list[Any] = [None] * len(rows)
    for i, scores in zip(order, scoring.score(lm, (rows[i] for i in order), batch_tokens)):
        found[i] = Continuation(float(scores.log_probs.sum()), len(scores.log_probs), bool(scores.best.all()))
    return found


def choose(
    lm: LanguageModel,
    records: Iterable[Mapping[str, Any]],
    normalise: str = "sum",
    *,
    answer_context: str = "Answer:",
    **options: Any,
) -> Choices:
    """Takes the most probable choice of each record.

    A record has `context`, `choices` (texts that continue it) and, for an accuracy, `label`.

    For a choice in the middle of a text a record has `contexts`, one for each choice, and `continuation`,
    which follows them.

    The score by `normalise`: "sum" is ln p(choice | context); "tokens", "characters" and "bytes" divide it by
    the choice's length; "context" subtracts ln p(choice | answer_context), what the choice is worth without
    the question (GPT-3).
    """
    if normalise not in NORMALISATIONS:
        raise ArgumentError(
            f"choose: normalise must be one of {', '.join(NORMALISATIONS)}, got {normalise!r}"
        )
    records = list(records)
    pairs = [_pairs(i, record) for i, record in enumerate(records)]
    if not pairs:
        raise ArgumentError("choose: there are no records")
    flat = [pair for row in pairs for pair in row]
    found = continuations(lm, flat, **options)
    values = np.array([c.log_prob for c in found])
    if normalise == "tokens":
        values /= [c.tokens for c in found]
    elif normalise == "characters":
        values /= [max(1, len(text.strip())) for _, text in flat]
    elif normalise == "bytes":
        values /= [max(1, len(text.strip().encode())) for _, text in flat]
    elif normalise == "context":
        alone = list(dict.fromkeys(text for _, text in flat))
        worth = dict(zip(alone, continuations(lm, [(answer_context, text) for text in alone], **options)))
        values -= [worth[text].log_prob for _, text in flat]
    scores = np.split(values, np.cumsum([len(row) for row in pairs])[:-1])
    predictions = np.array([int(row.argmax()) for row in scores])
    labels = [record.get("label") for record in records]
    accuracy = None if None in labels else float((predictions == np.array(labels)).mean())
    return Choices(predictions, scores, accuracy)


def last_words(lm: LanguageModel, texts: Iterable[str], **options: Any) -> LastWords:
    """LAMBADA: scores the last word of each text.

    The word is what follows the last white space, with the space before it; it is right when greedy decoding
    gives all its tokens.
    """
    pairs = []
    for i, text in enumerate(texts):
        context, _, word = text.strip().replace("\n", " ").rpartition(" ")
        if not context.strip():
            raise ArgumentError(f"last_words: text {i} has no context before its last word: {text!r:.80}")
        pairs.append((context.rstrip(), f" {word}"))
    if not pairs:
        raise ArgumentError("last_words: there are no texts")
    found = continuations(lm, pairs, **options)
    right, log_probs = np.array([c.greedy for c in found]), np.array([c.log_prob for c in found])
    return LastWords(float(right.mean()), float(Perplexity(-log_probs.sum(), len(found))), right, log_probs)


def _pairs(i: int, record: Mapping[str, Any]) -> list[tuple[str, str]]:
    if "choices" in record and "context" in record:
        pairs = [(record["context"], choice) for choice in record["choices"]]
    elif "contexts" in record and "continuation" in record:
        pairs = [(context, record["continuation"]) for context in record["contexts"]]
    else:
        raise ArgumentError(
            f"choose: record {i} must have context and choices, or contexts and continuation; it has "
            f"{', '.join(record)}"
        )
    if len(pairs) < 2:
        raise ArgumentError(f"choose: record {i} has {len(pairs)} choices")
    label = record.get("label")
    if label is not None and not (isinstance(label, (int, np.integer)) and 0 <= label < len(pairs)):
        raise ArgumentError(
            f"choose: the label of record {i} must be from 0 to {len(pairs) - 1}, got {label!r}"
        )
    return pairs


def _causal_row(lm: LanguageModel, kind: str, start: int | None, context: str, continuation: str) -> Row:
    tokenizer: Any = lm.tokenizer
    whole, known = tokenizer.encode_ids([context + continuation, context])
    n = min(len(whole), len(known))
    differ = np.flatnonzero(whole[:n] != known[:n])
    shared = int(differ[0]) if len(differ) else n
    before = [start] if start is not None else prefix(lm)
    ids = np.concatenate([np.array(before, np.int64), whole])
    asked = len(whole) - shared
    longest = lm.config.longest or WINDOW
    if asked == 0:
        raise ArgumentError(f"a continuation must have tokens of its own, got {continuation!r:.80}")
    if asked == len(ids):
        raise ArgumentError(
            "the first token needs something before it: give a context that is not empty, or start="
        )
    if asked > longest:
        raise ArgumentError(
            f"a continuation of {asked} tokens does not fit the {longest} positions of the model"
        )
    ids = ids[-longest:] if kind == "permuted" and asked < longest else ids[-longest - 1 :]
    labels = np.full(len(ids), NONE, np.int64)
    labels[-asked:] = ids[-asked:]
    return Row(ids, labels) if kind == "permuted" else Row(ids[:-1], labels[1:])


def _seq2seq_row(lm: LanguageModel, context: str, continuation: str) -> Row:
    longest = lm.config.longest
    tokenizer: Any = lm.tokenizer
    return Row(
        tokenizer(context, max_length=longest).input_ids,
        tokenizer(continuation, max_length=longest).input_ids,
    )
