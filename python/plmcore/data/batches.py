from __future__ import annotations

import functools
import itertools
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from plmcore._core import ArgumentError, IndexRangeError
from plmcore.data import mapped
from plmcore.data.order import Order
from plmcore.runtime import draws

POOL = 64  # batches whose examples are ordered together
POOL_EXAMPLES = 1 << 14  # the same for max_tokens, where the number of batches comes out in the end
# keeps these draws apart from those of the examples, whose third coordinate is their number
PLACE = 0x62617463686573 << 8

Batch = dict[str, np.ndarray]


class Objective(Protocol):
    """What Batches needs.

    Two methods are optional: examples(epoch), where the number differs from epoch to epoch, and
    lengths(epoch), the token count of every example or None where all are equal.
    """

    def __len__(self) -> int: ...

    def batch(self, indices: np.ndarray, *, seed: int, epoch: int) -> Batch: ...


class Pool(NamedTuple):
    """Examples in the order of use; batch k has indices[begins[k]:ends[k]]."""

    indices: np.ndarray
    begins: np.ndarray
    ends: np.ndarray


class Batches:
    """The batches of a training run: batches[step] for any step >= 0,
    a function of the arguments and the step alone.

    A step takes batch_size examples for each of `ranks` processes; the examples of all ranks together do not
    depend on how many there are, as long as batch_size * ranks stays. With bucket=True examples of similar
    length share a batch: the lengths are sorted within each 64 batches of the shuffled order, and the batches
    shuffled again. With max_tokens a batch takes as many examples as fit into that many tokens after padding,
    at most batch_size if that is given.
    """

    def __init__(
        self,
        objective: Objective,
        batch_size: int | None = None,
        *,
        seed: int,
        shuffle: bool = True,
        bucket: bool = False,
        max_tokens: int | None = None,
        rank: int = 0,
        ranks: int = 1,
        drop_last: bool = True,
    ):
        if batch_size is None and max_tokens is None:
            raise ArgumentError("batches need batch_size or max_tokens")
        for name, value in (("batch_size", batch_size), ("max_tokens", max_tokens), ("ranks", ranks)):
            if value is not None and value < 1:
                raise ArgumentError(f"{name} must be at least 1, got {value}")
        if not 0 <= rank < ranks:
            raise ArgumentError(f"rank must be in [0, {ranks}), got {rank}")
        self.objective, self.seed = objective, seed
        self.batch_size: Any = batch_size  # one of the two is a number
        self.max_tokens: Any = max_tokens
        self.shuffle, self.bucket, self.drop_last = shuffle, bucket, drop_last
        self.rank, self.ranks = rank, ranks
        self._first_steps = [0]  # of each epoch, as far as they have been counted
        self._counting = threading.Lock()
        self._order = functools.lru_cache(2)(self._make_order)
        self._lengths = functools.lru_cache(2)(self._make_lengths)
        self._plan = functools.lru_cache(2)(self._make_plan)
        self._pool = functools.lru_cache(4)(self._make_pool)

    def __getitem__(self, step: int) -> Batch:
        """The batch of a step: arrays by name."""
        epoch, indices = self.examples_of(step)
        batch = self.objective.batch(indices, seed=self.seed, epoch=epoch)
        mapped.trim()
        return batch

    def examples_of(self, step: int) -> tuple[int, np.ndarray]:
        """The epoch of a step, and the numbers of its examples on this rank."""
        epoch, within = self.place(step)
        if self.max_tokens is None:
            number, k = divmod(within, POOL)
        else:
            plan = self._plan(epoch)
            number = int(np.searchsorted(plan, within, side="right")) - 1
            k = within - plan[number]
        pool = self._pool(epoch, number)
        return epoch, pool.indices[pool.begins[k] : pool.ends[k]][self.rank :: self.ranks]

    def place(self, step: int) -> tuple[int, int]:
        """The epoch of a step and its number in the epoch."""
        if step < 0:
            raise IndexRangeError(f"steps count from 0, got {step}")
        if self.max_tokens is None and not hasattr(self.objective, "examples"):
            return divmod(step, self.steps_per_epoch())
        first = self._first_steps
        with self._counting:
            while first[-1] <= step:
                first.append(first[-1] + self.steps_per_epoch(len(first) - 1))
        epoch = int(np.searchsorted(first, step, side="right")) - 1
        return epoch, step - first[epoch]

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """The number of batches of an epoch."""
        if self.max_tokens is not None:
            steps = int(self._plan(epoch)[-1])
        else:
            steps, rest = divmod(self._examples(epoch), self.batch_size * self.ranks)
            steps += not self.drop_last and rest >= self.ranks
        if steps == 0:
            size = f"{self.batch_size} examples" if self.max_tokens is None else f"{self.max_tokens} tokens"
            raise ArgumentError(
                f"{self._examples(epoch)} examples are too few for one batch of {size} on {self.ranks} "
                f"rank(s): "
                "more text, smaller batches (data.batch) or shorter examples (data.length) are needed"
            )
        return steps

    def stream(self, start: int = 0, *, workers: int = 1, ahead: int | None = None) -> Iterator[Batch]:
        """batches[start], batches[start + 1], ... without end, made by `workers` threads up to `ahead`
        batches (default: 2 * workers) before they are asked for. workers=0 makes each when it is asked for.
        """
        if workers < 0 or start < 0:
            raise ArgumentError(f"a stream needs start >= 0 and workers >= 0, got {start} and {workers}")
        if workers == 0:
            return (self[step] for step in itertools.count(start))
        return self._prefetched(start, workers, max(1, 2 * workers if ahead is None else ahead))

    def _prefetched(self, start: int, workers: int, ahead: int) -> Iterator[Batch]:
        steps = itertools.count(start)
        waiting: deque[Future[Batch]] = deque()
        with ThreadPoolExecutor(workers, thread_name_prefix="batches") as threads:
            try:
                while True:
                    while len(waiting) < ahead:
                        waiting.append(threads.submit(self.__getitem__, next(steps)))
                    yield waiting.popleft().result()
            finally:
                for batch in waiting:
                    batch.cancel()

    def _examples(self, epoch: int) -> int:
        examples = getattr(self.objective, "examples", None)
        return len(self.objective) if examples is None else int(examples(epoch))

    def _make_order(self, epoch: int) -> Order | None:
        return Order(self._examples(epoch), self.seed, epoch) if self.shuffle else None

    def _make_lengths(self, epoch: int) -> np.ndarray | None:
        lengths = getattr(self.objective, "lengths", None)
        lengths = None if lengths is None else lengths(epoch)
        if lengths is None and self.max_tokens is not None:
            raise ArgumentError("max_tokens needs an objective with lengths(epoch)")
        if lengths is not None and len(lengths) != self._examples(epoch):
            raise ArgumentError(f"{self._examples(epoch)} examples need as many lengths, got {len(lengths)}")
        return lengths

    def _pool_examples(self) -> int:
        return POOL * self.batch_size * self.ranks if self.max_tokens is None else POOL_EXAMPLES * self.ranks

    def _make_plan(self, epoch: int) -> np.ndarray:
        """The first step of each pool in the epoch, and the number of all."""
        n, size = self._examples(epoch), self._pool_examples()
        return np.cumsum([0] + [len(self._make_pool(epoch, k).begins) for k in range(-(-n // size))])

    def _make_pool(self, epoch: int, number: int) -> Pool:
        size = self._pool_examples()
        used = self._examples(epoch)
        if self.max_tokens is None:  # what is left over for no batch goes before the lengths are looked at
            used = min(used, self.steps_per_epoch(epoch) * self.batch_size * self.ranks)
        positions = np.arange(number * size, min((number + 1) * size, used))
        order = self._order(epoch)
        indices = positions if order is None else order[positions]
        lengths = self._lengths(epoch) if self.bucket or self.max_tokens is not None else None
        if self.bucket and lengths is not None:
            indices = indices[np.argsort(lengths[indices], kind="stable")]
        if self.max_tokens is None:
            begins = np.arange(0, len(indices), self.batch_size * self.ranks)
            ends = np.minimum(begins + self.batch_size * self.ranks, len(indices))
        else:
            begins, ends = self._fit(indices, np.asarray(cast(np.ndarray, lengths)[indices]))
        if self.bucket and self.shuffle:
            full = (
                ends - begins == self.batch_size * self.ranks
                if self.max_tokens is None
                else np.ones(len(ends), bool)
            )
            mixed = np.argsort(
                draws.bits(self.seed, epoch, PLACE, number, np.arange(len(ends))), kind="stable"
            )
            # the smaller one of an epoch is its last
            mixed = np.concatenate([mixed[full[mixed]], np.flatnonzero(~full)])
            begins, ends = begins[mixed], ends[mixed]
        return Pool(indices, begins, ends)

    def _fit(self, indices: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where batches begin and end so that each rank's rows times the longest
        of them stay within max_tokens.
        """
        if len(lengths) and lengths.max() > self.max_tokens:
            i = int(lengths.argmax())
            raise ArgumentError(
                f"example {indices[i]} has {lengths[i]} tokens, more than max_tokens = {self.max_tokens}"
            )
        most = self.max_tokens if self.batch_size is None else self.batch_size
        cuts = [0]
        while len(lengths) - cuts[-1] >= self.ranks:
            shortest = max(1, int(lengths[cuts[-1]]))
            ahead = lengths[cuts[-1] : cuts[-1] + self.ranks * min(most, self.max_tokens // shortest)]
            rows = np.arange(self.ranks, len(ahead) + 1, self.ranks)
            longest = np.maximum.accumulate(ahead)[rows - 1]
            cuts.append(cuts[-1] + self.ranks * int((rows // self.ranks * longest <= self.max_tokens).sum()))
        return np.array(cuts[:-1], np.int64), np.array(cuts[1:], np.int64)
