from __future__ import annotations

import functools
import math
import zlib

import numpy as np

from plmcore._core import text as native
from plmcore.runtime import draws


class Rng:
    """The draws of the rows of a batch.

    A row's depend on seed, epoch and its example, on what they are for and on the column alone.
    """

    def __init__(self, seed: int, epoch: int, examples: np.ndarray):
        self.seed, self.epoch, self.examples = seed, epoch, examples.astype(np.uint64, copy=False)

    def part(self, rows: np.ndarray) -> Rng:
        """Of some of the rows."""
        return Rng(self.seed, self.epoch, self.examples[rows])

    def uniform(self, what: str, columns: int | None = None) -> np.ndarray:
        """float64 in [0, 1), [B] or [B, columns]."""
        own = self._own(what)
        out = np.empty(len(own) if columns is None else (len(own), columns))
        native.uniform(own, out)  # draws.uniform(own) or draws.uniform(own[:, None], np.arange(columns))
        return out

    def below(self, bound: int | np.ndarray, what: str, columns: int | None = None) -> np.ndarray:
        """int64 in [0, bound), [B] or [B, columns]; bound broadcasts."""
        return (self.uniform(what, columns) * bound).astype(np.int64)

    def pick(self, weights: tuple[float, ...], what: str, columns: int | None = None) -> np.ndarray:
        """Indices drawn with these weights, [B] or [B, columns]."""
        return np.searchsorted(cumulative(weights), self.uniform(what, columns), side="right")

    def at(self, what: str, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """What uniform(what, ...) has at these places, [n]."""
        return draws.uniform(self._own(what)[rows], columns)

    def _own(self, what: str) -> np.ndarray:
        """A number for each row, of which all its draws for one thing are made."""
        return self.examples ^ key(self.seed, self.epoch, what)


@functools.lru_cache(1024)
def key(seed: int, epoch: int, what: str) -> np.ndarray:
    return draws.bits(seed, epoch, zlib.crc32(what.encode()))


@functools.cache
def cumulative(weights: tuple[float, ...]) -> np.ndarray:
    sums = np.cumsum(weights)
    return sums[:-1] / sums[-1]


@functools.cache
def poisson(mean: float, least: int, most: int) -> tuple[float, ...]:
    """Weights of least, least + 1, ..., most."""
    return tuple(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(least, most + 1))
