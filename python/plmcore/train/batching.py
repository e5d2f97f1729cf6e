"""The batches of a step: how they are cut, made ahead and counted.

`batches[step]` is a dict of arrays, or a list of such dicts whose gradients are added up before the
parameters move.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from plmcore._core import ArgumentError
from plmcore.criteria import Batch
from plmcore.criteria.criterion import RATE


class Batches(Protocol):
    def __getitem__(self, step: int) -> Batch | Sequence[Batch]: ...


class Accumulated:
    """`times` batches of another as one, for gradients that do not fit the memory at once; a function of the
    step makes a ramp.

    Accumulated(batches, 4)[0] is [batches[0], ..., batches[3]].
    """

    def __init__(self, batches: Batches, times: int | Callable[[int], int]):
        self.batches, self.times = batches, times
        self._firsts = [0]

    def __getitem__(self, step: int) -> list[Batch]:
        """The list of batches of a step."""
        return [cast(Batch, self.batches[i]) for i in range(self.first(step), self.first(step + 1))]

    def first(self, step: int) -> int:
        """The inner batch that a step begins with."""
        if isinstance(self.times, int):
            return step * self.times
        while len(self._firsts) <= step:
            times = self.times(len(self._firsts) - 1)
            if times < 1:
                raise ArgumentError(
                    f"Accumulated: step {len(self._firsts) - 1} has {times} batches, at least 1 must be"
                )
            self._firsts.append(self._firsts[-1] + times)
        return self._firsts[step]


class Ahead:
    """Another's batches, the next of which is made by a thread while one is used."""

    def __init__(self, batches: Batches):
        self.batches = batches
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="plmcore batches")
        self._next: tuple[int, concurrent.futures.Future[Any]] | None = None

    def __getitem__(self, step: int) -> Batch | Sequence[Batch]:
        ready = self._next is not None and self._next[0] == step
        batch: Batch | Sequence[Batch] = (
            self._next[1].result() if ready and self._next else self.batches[step]
        )
        self._next = (step + 1, self._thread.submit(self.batches.__getitem__, step + 1))
        return batch

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)


def ramp(start: int, end: int, steps: int) -> Callable[[int], int]:
    """A number of batches that grows evenly from `start` to `end` over `steps` steps (GPT-3)."""
    return lambda step: start + (end - start) * min(step, steps) // max(1, steps)


def tokens_of(batch: Batch) -> int:
    """Tokens that the model reads: padding does not count, a decoder's input does. 0 without input_ids."""
    if "input_ids" not in batch:
        return 0
    seen = batch.get("attention_mask")
    own = batch["input_ids"].size if seen is None else int(np.count_nonzero(seen))
    target = batch.get("decoder_input_ids")
    if (mask := batch.get("decoder_attention_mask")) is not None:
        return own + int(np.count_nonzero(mask))
    return own + (0 if target is None else target.size)


def rate_of(parts: Sequence[Batch]) -> float:
    """The mean over a step's batches of what they say the learning rate is multiplied by."""
    return float(np.mean([float(part.get(RATE, 1.0)) for part in parts]))


def check_batch(batch: Any) -> list[Batch]:
    """The parts of what `batches[step]` gave."""
    parts = [batch] if isinstance(batch, Mapping) else list(batch)
    if not parts:
        raise ArgumentError("train: a step has no batch")
    return parts
