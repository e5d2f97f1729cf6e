"""Blanks of texts, filled or scored by a model that writes pieces for them (GLM).

Shapes: B texts, n sequences of each, K blanks, T length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plmcore import nn
from plmcore._core import ArgumentError, Search, Tensor, ops
from plmcore.generate.run import decode
from plmcore.generate.settings import Settings
from plmcore.generate.steps import Steps, padded
from plmcore.models.blanks import Fills, Pieces
from plmcore.nn.state import State
from plmcore.objectives.blanks import MASKS

START, END = "<|startofpiece|>", "<|endofpiece|>"
NONE = -100


@dataclass(frozen=True)
class Filled:
    """A text with its blanks filled, the pieces in the order of the blanks, and their log-probability, the
    ends of pieces included. tokens: the ids of each piece.
    """

    text: str
    pieces: list[str]
    score: float
    tokens: list[list[int]]


@dataclass(frozen=True)
class Blanks:
    """A text as ids, and the places of its masks there. spaced: whether a space is before each."""

    ids: np.ndarray  # int64 [T]
    places: np.ndarray  # int64 [K]
    spaced: tuple[bool, ...]


class BlankSteps(Steps):
    """Reads texts with blanks, then writes their pieces."""

    def __init__(self, model: Fills, texts: Sequence[Blanks], pieces: Pieces):
        most = max(len(t.places) for t in texts)
        prompts = [np.append(t.ids, pieces.start) for t in texts]
        super().__init__(model, prompts, most * (pieces.limit + 1))
        self.texts, self.pieces = texts, pieces

    def start(self) -> Tensor:
        most = max(len(t.places) for t in self.texts)
        given = {
            "source_lengths": np.array([len(t.ids) for t in self.texts]),
            "places": np.stack([np.pad(t.places, (0, most - len(t.places)), "edge") for t in self.texts]),
        }
        ids, mask = padded(self.prompts)
        given |= {"input_ids": ids} | ({} if mask is None else {"attention_mask": mask})
        model: Any = self.model
        found: tuple[Tensor, State] = model.read(**model.tensors(given), pieces=self.pieces)
        return self.ran([list(range(len(self.texts)))], [found])


def fill(
    lm: Any, texts: str | Sequence[str], num_beams: int, max_new_tokens: int, **options: Any
) -> Filled | list[Filled]:
    """See LanguageModel.fill_blanks."""
    model, start, end = needed(lm, "fill_blanks")
    if isinstance(texts, str):
        found = fill(lm, [texts], num_beams, max_new_tokens, **options)
        assert isinstance(found, list)
        return found[0]
    if not texts:
        return []
    rows = [blanks_of(lm, text, "fill_blanks") for text in texts]
    if not 1 <= max_new_tokens < lm.config.longest:
        raise ArgumentError(
            f"fill_blanks: max_new_tokens must be from 1 to {lm.config.longest - 1}, so many positions a "
            f"piece has, got {max_new_tokens}"
        )
    given = {"length_penalty": 0.0, **options, "num_beams": num_beams, "max_new_tokens": 1}
    settings = Settings.of(lm.config, None, {**given, "output_scores": True, "eos_token_id": None})
    if settings.num_return_sequences != 1:
        raise ArgumentError("fill_blanks gives one text for each; leave num_return_sequences out")
    steps = BlankSteps(model, rows, Pieces(start, end, max_new_tokens))
    rules = settings.search_options(len(rows), max(len(p) for p in steps.prompts), None, False)
    rules.max_new_tokens = steps.limit
    if all(len(r.places) == 1 for r in rows):
        rules.eos = [end]
    else:
        begins = [len(p) for p in steps.prompts]
        rules.set_stop(lambda i, ids: ids[begins[i] :].count(end) == len(rows[i].places))
    with nn.inference():
        search = Search([p.tolist() for p in steps.prompts], rules)
        while not search.done:
            search.accept(steps(search))
    results = [search.result(i)[0] for i in range(len(rows))]
    return [
        filled(lm.tokenizer, row, result.tokens, float(np.sum(result.token_scores, dtype=np.float64)), end)
        for row, result in zip(rows, results)
    ]


def filled(tokenizer: Any, row: Blanks, tokens: Sequence[int], score: float, end: int) -> Filled:
    """tokens: those of the pieces, each with the end token."""
    pieces: list[list[int]] = [[]]
    for token in tokens:
        if token == end:
            pieces.append([])
        else:
            pieces[-1].append(token)
    whole = row.ids.tolist()
    for place, piece in reversed(list(zip(row.places.tolist(), pieces))):
        whole[place : place + 1] = piece
    pieces = pieces[: len(row.places)]
    return Filled(decode(tokenizer, whole), [decode(tokenizer, p).strip() for p in pieces], score, pieces)


def score(lm: Any, texts: Sequence[str], answers: Sequence[Any], end: bool = True) -> np.ndarray:
    """The log-probability of each answer in the blanks of its text.  float64 [n]"""
    if not len(texts):
        return np.zeros(0)
    given = batch(lm, texts, answers, end)
    labels, model = given.pop("labels"), lm.model
    with nn.inference():
        asked = model.tensors({"labels": labels})["labels"]
        encoded = model.body.encode(**model.tensors(given), reads=(asked,))
        hidden, wanted = encoded.layout.labelled(encoded.rows, asked)  # [M, C], [M]
        losses = ops.cross_entropy(model.logits(hidden), wanted, reduction="none").numpy()
    owner = np.nonzero(labels != NONE)[0]
    return -np.bincount(owner, weights=losses.astype(np.float64), minlength=len(labels))


def batch(lm: Any, texts: Sequence[str], answers: Sequence[Any], end: bool = True) -> dict[str, np.ndarray]:
    """Inputs and labels for lm(**batch) of texts whose blanks are filled with these answers, each a text, or
    a list of them where there are several blanks. Without `end` the ends of pieces are not predicted.
    """
    _, start, stop = needed(lm, "score_blanks")
    if len(texts) != len(answers):
        raise ArgumentError(
            f"score_blanks: {len(texts)} texts and {len(answers)} answers; each text needs one"
        )
    rows = []
    for text, answer in zip(texts, answers):
        row = blanks_of(lm, text, "score_blanks")
        given, K = [answer] if isinstance(answer, str) else list(answer), len(row.places)
        if len(given) != K or not all(isinstance(a, str) for a in given):
            raise ArgumentError(
                f"score_blanks: {text!r:.200} has {K} blanks, so an answer is {K} texts: {answer!r:.200}"
            )
        rows.append(with_pieces(row, pieces_of(lm.tokenizer, row, given), start, stop if end else None))
    longest = max(int(r["block_position_ids"].max()) for r in rows)
    if longest > lm.config.longest:
        raise ArgumentError(
            f"score_blanks: an answer needs {longest} positions, and the model has {lm.config.longest} for a "
            f"piece"
        )
    T = max(len(r["input_ids"]) for r in rows)

    def stacked(name: str) -> np.ndarray:
        fill = NONE if name == "labels" else 0
        return np.stack([np.pad(r[name], (0, T - len(r[name])), constant_values=fill) for r in rows])

    lengths = np.array([np.count_nonzero(r["block_position_ids"] == 0) for r in rows])
    return {name: stacked(name) for name in rows[0]} | {"source_lengths": lengths}


def classify(
    lm: Any, texts: Sequence[str], answers: Mapping[str, str], template: str, batch_size: int
) -> list[dict[str, Any]]:
    """See LanguageModel.classify_blanks."""
    if not answers:
        raise ArgumentError("classify_blanks: it needs an answer for each class, as in {'positive': 'good'}")
    if "{}" not in template:
        raise ArgumentError(f"classify_blanks: the template has no {{}} for the text: {template!r:.200}")
    filled_in = [template.replace("{}", text) for text in texts for _ in answers]
    words = list(answers.values()) * len(texts)
    parts = [
        score(lm, filled_in[i : i + batch_size], words[i : i + batch_size])
        for i in range(0, len(words), batch_size)
    ]
    scores = np.concatenate([np.zeros(0), *parts]).reshape(-1, len(answers))
    shares = np.exp(scores - scores.max(1, keepdims=True, initial=-np.inf))
    shares /= shares.sum(1, keepdims=True)
    names = list(answers)
    return [
        {
            "label": names[int(row.argmax())],
            "probability": float(row.max()),
            "probabilities": dict(zip(names, row.tolist())),
        }
        for row in shares
    ]


def with_pieces(
    row: Blanks, pieces: Sequence[np.ndarray], start: int, end: int | None
) -> dict[str, np.ndarray]:
    """What a model reads of a text and its pieces, and what it is to predict, without padding.  [T] each

    Without `end` the end of a piece is not predicted.
    """
    ids, places = [row.ids], [np.arange(len(row.ids))]
    blocks, labels = [np.zeros(len(row.ids), np.int64)], [np.full(len(row.ids), NONE)]
    for place, piece in zip(row.places, pieces):
        ids.append(np.append(start, piece))
        places.append(np.full(len(piece) + 1, place))
        blocks.append(np.arange(1, len(piece) + 2))
        labels.append(np.append(piece, NONE if end is None else end))
    found = {"input_ids": ids, "position_ids": places, "block_position_ids": blocks, "labels": labels}
    joined = {name: np.concatenate(parts).astype(np.int64) for name, parts in found.items()}
    return joined | {"attention_mask": np.ones(len(joined["input_ids"]), np.int64)}


def pieces_of(tokenizer: Any, row: Blanks, answers: Sequence[str]) -> list[np.ndarray]:
    """Answers as they would be spelled in the text."""
    spelled = [tokenizer.backend.word(a) if spaced else a for a, spaced in zip(answers, row.spaced)]
    return [ids.astype(np.int64) for ids in tokenizer.encode_ids(spelled)]


def blanks_of(lm: Any, text: str, what: str) -> Blanks:
    """A text with masks as ids, with special tokens around it."""
    tokenizer = lm.tokenizer
    masks = {mask: tokenizer.id_of(mask) for mask in MASKS if tokenizer.id_of(mask) is not None}
    pattern = r"(\s*)(" + "|".join(map(re.escape, masks)) + ")"
    if not masks or not (found := re.findall(pattern, text)):
        raise ArgumentError(f"{what}: the text has no blank, {', '.join(masks or MASKS)}: {text!r:.200}")
    bare = text
    if tokenizer.kind == "byte-bpe":  # a space belongs to the word after it, which the mask stands for
        bare = re.sub(pattern, r"\2", text)
    ids, _ = tokenizer.build(tokenizer.encode_ids([bare])[0])
    if len(ids) > lm.config.longest:
        raise ArgumentError(
            f"{what}: the text has {len(ids)} tokens, and the model {lm.config.longest} positions"
        )
    places = np.flatnonzero(np.isin(ids, list(masks.values())))
    if len(places) != len(found):
        raise ArgumentError(
            f"{what}: {len(found)} blanks are {len(places)} masks to this tokenizer: {', '.join(masks)} must "
            f"be special tokens"
        )
    return Blanks(ids, places, tuple(bool(space) for space, _ in found))


def needed(lm: Any, what: str) -> tuple[Fills, int, int]:
    """The model, and the ids of the start and the end of a piece."""
    if not isinstance(lm.model, Fills):
        raise ArgumentError(
            f"{what}: {lm.config.model_type} with the head {lm.head} writes no pieces for blanks; load a GLM "
            f"with head='causal-lm'"
        )
    if lm.tokenizer is None:
        raise ArgumentError(
            f"{what}: this model has no tokenizer; load it from a directory with tokenizer files"
        )
    ids = [lm.tokenizer.id_of(token) for token in (START, END)]
    if missing := [token for token, i in zip((START, END), ids) if i is None]:
        raise ArgumentError(
            f"{what}: this tokenizer has no {' and no '.join(missing)}, between which a piece stands; "
            f"tokenizer.add_tokens adds them"
        )
    start, end = ids
    return lm.model, start, end
