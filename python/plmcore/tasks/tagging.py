"""A tag for each word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore import evaluate
from plmcore._core import ArgumentError
from plmcore.data.readers import Record
from plmcore.models.outputs import Output
from plmcore.objectives.objective import IGNORED
from plmcore.objectives.rng import Rng
from plmcore.tasks import labels
from plmcore.tasks.examples import Examples


class Tagging(Examples):
    """The first token of a word has its tag, the others none.

    Long sentences make several rows that overlap by `stride` tokens; a word is tagged in the first row that
    has its first token.
    """

    head = "token-classification"

    def __init__(
        self,
        records: Sequence[Record],
        targets: Sequence[list[int] | None],
        names: Sequence[str],
        *common: Any,
    ):
        super().__init__(*common)
        self.targets, self.names = targets, names
        self.sizes = [len(r["tokens"]) for r in records]
        if not all(self.sizes):
            raise ArgumentError(f"{records[self.sizes.index(0)]['line']} has no words")
        stride = self.settings["stride"]
        self.rows.add(
            [r["tokens"] for r in records],
            words=True,
            max_length=self.length,
            stride=stride,
            detail=("word_ids",),
        )
        self.words = self._first_tokens()
        self.cut = self.rows.divided

    def _first_tokens(self) -> list[np.ndarray]:
        """Of each row: the word that a token is tagged for, -1 for none."""
        found, before = [], (-1, -1)  # the record, and the last of its words that has a place
        for record, detail in zip(self.rows.record, self.rows.detail, strict=True):
            last = before[1] if before[0] == record else -1
            words = detail["word_ids"].copy()
            first = np.diff(words, prepend=-1) != 0
            words[~first | (words <= last)] = -1
            before = record, max(last, int(words.max(initial=-1)))
            found.append(words)
        return found

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        batch = self.rows.batch(examples)
        if self.known:
            tags = [self._tags(i) for i in examples]
            batch["labels"] = self.rows.filled(examples, tags, IGNORED)
        return batch

    def _tags(self, row: int) -> np.ndarray:
        words = self.words[row]
        tags = np.append(np.array(self.targets[self.rows.record[row]], np.int64), IGNORED)  # -1 is the last
        return tags[words]

    def collect(self, out: Output, n: int) -> list[np.ndarray]:
        return list(out.logits.numpy().argmax(-1))

    def predictions(self, collected: Sequence[np.ndarray]) -> list[Record]:
        # a word that is no token to the tokenizer keeps this
        found = [[self.names[0]] * n for n in self.sizes]
        for row, tags in enumerate(collected):
            words = self.words[row]
            start = self.rows.start(len(tags), len(words))
            for at in np.flatnonzero(words >= 0):
                found[self.rows.record[row]][words[at]] = self.names[tags[start + at]]
        return [{"tags": tags} for tags in found]

    def scores(self, predictions: Sequence[Record]) -> dict[str, float]:
        sides: tuple[Any, ...] = [p["tags"] for p in predictions], [r["tags"] for r in self.right()]
        if self.settings["scheme"] == "bioes":
            sides = tuple([labels.bio(tags) for tags in side] for side in sides)
        return evaluate.compute(self.settings["metrics"], *sides)

    def right(self) -> list[Record]:
        return [{"tags": [self.names[t] for t in tags]} for tags in self.targets]
