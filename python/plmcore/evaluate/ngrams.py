"""Has a training corpus seen a test set? Shared n-grams,
as GPT-3 looked for them (Brown et al. 2020, appendix C).

The n-grams of the test set are kept as sorted 64-bit hashes; the training corpus streams by, so that memory
depends on the test set alone.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plmcore._core import ArgumentError, KindError
from plmcore.evaluate.texts import pieces
from plmcore.runtime import draws

SHORTEST, LONGEST = 8, 13  # of n, when the test set chooses it
BLOCK = 1 << 20  # tokens of an array at a time
_PUNCTUATION = re.compile(r"[^\w\s]+")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Contamination:
    """What was found about each test text, in order."""

    n: int
    shared: np.ndarray  # float64: the share of its words that lie in an n-gram of the training corpus
    checked: np.ndarray  # bool: has it n words or more?

    @property
    def found(self) -> np.ndarray:
        """bool: has the text an n-gram that the training corpus has?"""
        return self.shared > 0

    @property
    def share(self) -> float:
        """Of the texts that were checked, those with a shared n-gram."""
        return float(self.found[self.checked].mean()) if self.checked.any() else 0.0

    @property
    def clean(self) -> np.ndarray:
        """The numbers of the texts that have none, to score a model on these alone."""
        return np.flatnonzero(~self.found)

    def __repr__(self) -> str:
        return (
            f"Contamination({self.found.sum()} of {self.checked.sum()} texts share a {self.n}-gram with "
            f"the training corpus; {(~self.checked).sum()} are shorter)"
        )


def contamination(
    training: Any, tests: Sequence[str | np.ndarray], n: int | None = None, common: int | None = None
) -> Contamination:
    """Finds the test texts that share an n-gram of words with the training corpus.

    training: files (pathlib.Path) or texts, one or several, or arrays of ids or a Corpus when the tests are
        arrays of ids of the same tokenizer. Words are lower-case and without punctuation.
    n: unless given the 5th percentile of the lengths of the tests in words, but between 8 and 13.
    common: n-grams that the training corpus has more often than this are phrases and do not count.
    """
    if isinstance(tests, (str, os.PathLike)) or len(tests) == 0:
        raise ArgumentError("contamination: tests must be a list of texts, or of arrays of ids")
    words = _Words()
    streams = [np.concatenate([np.zeros(0, np.uint64), *words.of(test)]) for test in tests]
    lengths = np.array([len(s) for s in streams])
    if n is None:
        n = int(np.clip(np.percentile(lengths, 5), SHORTEST, LONGEST))
    if n < 1:
        raise ArgumentError(f"contamination: n must be at least 1, got {n}")
    grams = [hashes(stream, n) for stream in streams]
    wanted = np.unique(np.concatenate(grams))
    seen = np.zeros(len(wanted), np.int64)
    for source in _sources(training):
        _check_kind(source, tests[0])
        tail = np.zeros(0, np.uint64)
        for block in words.of(source):
            stream = np.concatenate([tail, block])
            _count(hashes(stream, n), wanted, seen)
            tail = stream[len(stream) - min(n - 1, len(stream)) :]
    bad = wanted[(seen > 0) if common is None else (seen > 0) & (seen <= common)]
    shared = np.array([_covered(g, bad, n, length) for g, length in zip(grams, lengths)])
    return Contamination(n, shared, lengths >= n)


def hashes(words: np.ndarray, n: int) -> np.ndarray:
    """One hash for each n words in a row.  uint64 [m] -> [m - n + 1]"""
    count = max(0, len(words) - n + 1)
    total = np.zeros(count, np.uint64)
    for i in range(n):
        total = total * _FACTOR + words[i : i + count]
    return total


def _count(grams: np.ndarray, wanted: np.ndarray, seen: np.ndarray) -> None:
    if len(wanted) == 0:
        return
    places = np.minimum(np.searchsorted(wanted, grams), len(wanted) - 1)
    np.add.at(seen, places[wanted[places] == grams], 1)


def _covered(grams: np.ndarray, bad: np.ndarray, n: int, length: int) -> float:
    """The share of the words that lie in a bad n-gram."""
    covered = np.zeros(length + 1, np.int64)
    hits = np.flatnonzero(np.isin(grams, bad))
    np.add.at(covered, hits, 1)
    np.add.at(covered, np.minimum(hits + n, length), -1)
    return float((np.cumsum(covered)[:length] > 0).mean()) if length else 0.0


class _Words(dict[str, int]):
    """Texts and ids as streams of 64-bit numbers, one for each word. Remembers a million words."""

    def __missing__(self, word: str) -> int:
        if len(self) > 1_000_000:
            self.clear()
        number = int.from_bytes(
            hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
        )
        self[word] = number
        return number

    def of(self, source: str | os.PathLike[str] | np.ndarray) -> Iterator[np.ndarray]:
        if isinstance(source, (str, os.PathLike)):
            for piece in pieces(source):
                found = _PUNCTUATION.sub("", piece.lower()).split()
                yield np.fromiter(map(self.__getitem__, found), np.uint64, len(found))
            return
        ids = np.asarray(source)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise KindError(f"contamination: texts, paths or arrays of ids [n], got {ids.dtype} {ids.shape}")
        for i in range(0, len(ids), BLOCK):
            yield draws.bits(ids[i : i + BLOCK])


def _sources(training: Any) -> Iterable[Any]:
    if hasattr(training, "documents"):
        return [training.ids]
    one = isinstance(training, (str, os.PathLike)) or (
        isinstance(training, np.ndarray) and training.ndim == 1
    )
    several: Any = training
    return [training] if one else several


def _check_kind(source: Any, test: Any) -> None:
    """Words are compared with words and ids with ids."""
    if isinstance(source, (str, os.PathLike)) != isinstance(test, (str, os.PathLike)):
        raise ArgumentError(
            "contamination: the training corpus and the tests must both be texts, or both ids of one "
            "tokenizer"
        )
