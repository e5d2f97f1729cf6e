from __future__ import annotations

import math

import numpy as np

from plmcore._core import ArgumentError, IndexRangeError
from plmcore.runtime import draws

TABLE = 1 << 16  # up to here a table is sorted: every permutation is equally likely
HALF_ROUNDS = 8
# keeps these draws apart from those of the examples, whose third coordinate is their number
PLACE = 0x6F72646572 << 24


class Order:
    """A shuffled order of n items as a function of (seed, epoch): order[i] is the i-th of them, for a number,
    an array or a slice.

    Large orders keep nothing in memory: i is split in two digits l < a and r < b with a b >= n, which take
    turns in being moved by a random function of the other (a Feistel network). A result of n or more goes
    through again.
    """

    def __init__(self, n: int, seed: int, epoch: int = 0):
        if n < 0:
            raise ArgumentError(f"an order needs n >= 0 items, got {n}")
        self.n, self.seed, self.epoch = n, seed, epoch
        if n <= TABLE:
            self._table = np.argsort(draws.bits(seed, epoch, PLACE, np.arange(n)), kind="stable")
        else:
            self._a = math.isqrt(n - 1) + 1
            self._b = -(-n // self._a)
            self._keys = [int(k) for k in draws.bits(seed, epoch, PLACE, np.arange(HALF_ROUNDS))]

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int | slice | np.ndarray) -> np.ndarray:
        """The examples at these places of the order."""
        if isinstance(i, slice):
            i = np.arange(*i.indices(self.n))
        i = np.asarray(i)
        if i.size and not (0 <= i.min() and i.max() < self.n):
            raise IndexRangeError(
                f"an order of {self.n} items has no item {i.min() if i.min() < 0 else i.max()}"
            )
        if self.n <= TABLE:
            return self._table[i]
        x = self._permute(np.atleast_1d(i).astype(np.uint64))
        while len(outside := np.flatnonzero(x >= self.n)):
            x[outside] = self._permute(x[outside])
        return x.astype(np.int64).reshape(i.shape)[()]

    def _permute(self, x: np.ndarray) -> np.ndarray:
        a, b = np.uint64(self._a), np.uint64(self._b)
        l: np.ndarray = x // b
        r: np.ndarray = x % b
        for k in range(0, HALF_ROUNDS, 2):
            l = (l + draws.bits(self._keys[k], r) % a) % a
            r = (r + draws.bits(self._keys[k + 1], l) % b) % b
        return l * b + r
