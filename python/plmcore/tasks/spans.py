"""Answers that are a stretch of the text they are found in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from plmcore import criteria, evaluate, nn
from plmcore._core import ArgumentError
from plmcore.data.readers import Record
from plmcore.models.outputs import Output
from plmcore.objectives.rng import Rng
from plmcore.tasks import labels
from plmcore.tasks.examples import Examples, softmax


class Candidate(NamedTuple):
    score: float
    begin: int  # characters of the context
    end: int


class Spans(Examples):
    """Question and context; a long context makes several rows that overlap by `stride` tokens.

    A row without the answer points at its null position: the token for the whole sequence, or the first one
    where the family has none.
    """

    head = "question-answering"

    def __init__(self, records: Sequence[Record], *common: Any):
        super().__init__(*common)
        self.records = records
        self.targets = [r["answers"] if r["answers"] or r["impossible"] else None for r in records]
        questions = [self._question(r["question"]) for r in records]
        self.rows.add(
            questions,
            [r["context"] for r in records],
            max_length=self.length,
            truncation="only_second",
            stride=self.settings["stride"],
            detail=("offsets", "sequence_ids"),
        )
        self.cut = self.rows.divided
        cls = self.tokenizer.cls_token_id
        self.null = [int(np.flatnonzero(ids == cls)[0]) if cls in ids else 0 for ids in self.rows.ids]
        self.places = [self._place(row) for row in range(len(self.rows))] if self.known else []

    def _question(self, text: str) -> str:
        """Cut to question_length tokens."""
        most = self.settings["question_length"]
        ids = self.tokenizer.encode_ids([text])[0]
        return text if len(ids) <= most else self.tokenizer.decode(ids[:most])

    def _place(self, row: int) -> tuple[int, int]:
        """First and last token of the first answer within a row;
        twice the null position where it is not all there.
        """
        answers = self.targets[self.rows.record[row]]
        null = self.null[row], self.null[row]
        if not answers:
            return null
        begin, end = answers[0]["start"], answers[0]["start"] + len(answers[0]["text"])
        detail = self.rows.detail[row]
        inside = np.flatnonzero(detail["sequence_ids"] == 1)
        if not len(inside):
            return null
        offsets = detail["offsets"][inside]
        if offsets[0, 0] > begin or offsets[-1, 1] < end:
            return null
        first, last = (offsets[:, 0] <= begin).nonzero()[0][-1], (offsets[:, 1] >= end).nonzero()[0][0]
        return (int(inside[first]), int(inside[last])) if first <= last else null

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        batch = self.rows.batch(examples)
        if self.known:
            width = batch["input_ids"].shape[1]
            starts = np.array([[self.rows.start(width, len(self.rows.ids[i]))] for i in examples])
            batch["labels"] = np.array([self.places[i] for i in examples], np.int64) + starts
        return batch

    def criterion(self, model: nn.Module) -> criteria.Labelled:
        return criteria.Spans()

    def collect(self, out: Output, n: int) -> list[np.ndarray]:
        both = np.stack([out.start_logits.numpy(), out.end_logits.numpy()], 1)
        return list(both.astype(np.float64))  # [2, T] each

    def predictions(self, collected: Sequence[np.ndarray]) -> list[Record]:
        found: list[list[Candidate]] = [[] for _ in self.records]
        nothing = np.full(len(self.records), np.inf)
        for row, logits in enumerate(collected):
            record, n = self.rows.record[row], len(self.rows.ids[row])
            start, end = logits[:, self.rows.start(logits.shape[1], n) :][:, :n]
            found[record] += self._candidates(row, start, end)
            nothing[record] = min(nothing[record], start[self.null[row]] + end[self.null[row]])
        return [
            self._answer(r, c, nothing[i]) for i, (r, c) in enumerate(zip(self.records, found, strict=True))
        ]

    def _candidates(self, row: int, start: np.ndarray, end: np.ndarray) -> list[Candidate]:
        """The best of a row: within the context, the end not before the start,
        of at most answer_length tokens.
        """
        detail, most = self.rows.detail[row], self.settings["n_best"]
        inside = np.flatnonzero(detail["sequence_ids"] == 1)
        if not len(inside):
            return []
        sums = start[inside][:, None] + end[inside]
        i, j = np.indices(sums.shape)
        sums[(j < i) | (j - i >= self.settings["answer_length"])] = -np.inf
        best = np.argsort(-sums, axis=None, kind="stable")[:most]
        offsets = detail["offsets"][inside]
        pairs = [np.unravel_index(k, sums.shape) for k in best]
        return [
            Candidate(float(sums[a, b]), int(offsets[a, 0]), int(offsets[b, 1]))
            for a, b in pairs
            if np.isfinite(sums[a, b])
        ]

    def _answer(self, record: Record, candidates: list[Candidate], nothing: float) -> Record:
        best: dict[str, float] = {}
        for c in sorted(candidates, key=lambda c: -c.score):
            # byte-level tokens begin with a space
            best.setdefault(record["context"][c.begin : c.end].strip(), c.score)
        names = list(best)[: self.settings["n_best"]]
        probabilities: Any = softmax(np.array([best[t] for t in names])) if names else []
        text = names[0] if names else ""
        if self.settings["unanswerable"] and names and nothing - best[text] > self.settings["null_threshold"]:
            text = ""
        return {
            "id": record["id"],
            "answer": text,
            "n_best": [
                {"answer": t, "probability": round(float(p), 6)} for t, p in zip(names, probabilities)
            ],
        }

    def scores(self, predictions: Sequence[Record]) -> dict[str, float]:
        rights = [[a["text"] for a in answers] or [""] for answers in self.targets]
        return evaluate.compute(self.settings["metrics"], [p["answer"] for p in predictions], rights)

    def right(self) -> list[Record]:
        return [{"answer": answers[0]["text"] if answers else ""} for answers in self.targets]


def check_answers(records: Sequence[Record], path: Any, *, needed: bool = True) -> None:
    """Every answer must stand where it is said to; where they are `needed` every question has one or says
    that it has none, and some do.
    """
    if needed and not any(r["answers"] for r in records):
        raise labels.at(records[0], path, "no question has an answer: there is nothing to learn")
    for r in records:
        if needed and not r["answers"] and not r["impossible"]:
            raise labels.at(r, path, "there is no answer, and is_impossible is not true")
        for answer in r["answers"]:
            start, text = answer["start"], answer["text"]
            if not isinstance(start, int) or start < 0 or r["context"][start : start + len(text)] != text:
                raise labels.at(r, path, f"the answer {text!r} does not stand at character {start}")


def check_stride(stride: int, length: int, added: int, question: int) -> None:
    """What is left for the context must be more than what rows share."""
    room = length - added - question
    if not 0 <= stride < room:
        raise ArgumentError(
            f"task.stride is {stride}: rows of {length} tokens with {question} for the question leave "
            f"{room} for the context"
        )
