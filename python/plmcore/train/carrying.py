"""Batches of streams, each row of which goes on where the batch before ended."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np

from plmcore import data
from plmcore._core import ArgumentError, IndexRangeError
from plmcore.criteria.criterion import CONTINUES, RATE, Batch
from plmcore.runtime import draws

VARY = 0x76617279  # keeps these draws apart
HALF = 0.05  # how often a window is half as long
SPREAD = 5.0  # the standard deviation of lengths, in tokens
LEAST = 5  # tokens


class Continued:
    """Batches that say whether they go on: all but the first of an epoch."""

    def __init__(self, batches: data.Batches):
        self.batches = batches

    def __getitem__(self, step: int) -> Batch:
        return self.batches[step] | {CONTINUES: np.array(self.batches.place(step)[1] > 0)}

    def steps_per_epoch(self, epoch: int = 0) -> int:
        return self.batches.steps_per_epoch(epoch)


class Varied:
    """The same of windows whose lengths are drawn, anew for each epoch (AWD-LSTM): max(5, N(length, 5))
    tokens, or with a probability of 0.05 around half the length. The rate of a step is that of its share
    of the length.

    text: an objectives.text.Text, cut into `streams` equal parts. Each token but the first of a part is
    predicted once in an epoch: a batch has one token more than its length.
    """

    def __init__(self, text: Any, streams: int, length: int, seed: int):
        self.text, self.streams, self.length, self.seed = text, streams, length, seed
        self.part = text.size // streams
        if self.part < length + 1:
            raise ArgumentError(
                f"{streams} streams of a text of {text.size} tokens are {self.part} tokens long: no window "
                f"of {length + 1} fits; take fewer streams, shorter windows or more text"
            )
        self._first_steps = [0]  # of each epoch, as far as they have been counted
        self._counting = threading.Lock()
        self.cuts = functools.lru_cache(2)(self._cuts)

    def __getitem__(self, step: int) -> Batch:
        epoch, within = self.place(step)
        begin, end = (int(cut) for cut in self.cuts(epoch)[within : within + 2])
        starts = np.arange(self.streams) * self.part + begin
        ids = self.text.take(starts, np.full(self.streams, end - begin + 1), 0)
        rate = np.array((end - begin) / self.length)
        return {"input_ids": ids, "labels": ids, CONTINUES: np.array(within > 0), RATE: rate}

    def place(self, step: int) -> tuple[int, int]:
        """The epoch of a step and its number in the epoch."""
        if step < 0:
            raise IndexRangeError(f"steps count from 0, got {step}")
        first = self._first_steps
        with self._counting:
            while first[-1] <= step:
                first.append(first[-1] + self.steps_per_epoch(len(first) - 1))
        epoch = int(np.searchsorted(first, step, side="right")) - 1
        return epoch, step - first[epoch]

    def steps_per_epoch(self, epoch: int = 0) -> int:
        return len(self.cuts(epoch)) - 1

    def _cuts(self, epoch: int) -> np.ndarray:
        """Where the windows of an epoch begin and end in each part."""
        last = self.part - 1  # the last token is predicted, and not read
        i = np.arange(last // LEAST + 1)
        half, radius, angle = (draws.uniform(self.seed, VARY, epoch, 3 * i + k) for k in range(3))
        normal = np.sqrt(-2 * np.log(1 - radius)) * np.cos(2 * np.pi * angle)
        usual = np.where(half < HALF, self.length / 2, self.length)
        ends = np.cumsum(np.maximum(LEAST, (usual + SPREAD * normal).astype(np.int64)))
        return np.concatenate([[0], ends[ends < last], [last]])
