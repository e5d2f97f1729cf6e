"""Records of GloVe: how often two words stand near each other.

16 bytes each: int32 row, int32 column, ids from 1, float64 value.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence

import numpy as np

from plmcore import _core
from plmcore._core import ArgumentError, FormatError
from plmcore.runtime.kinds import checked
from plmcore.vectors.corpus import Corpus, Text

RECORD = np.dtype([("row", "<i4"), ("column", "<i4"), ("value", "<f8")])
_BUCKET = 4_000_000  # records that are shuffled in memory
_LEAST_MB = 16


class Cooccurrences:
    """The file of records that was written, its words and their counts; len() is the number of records."""

    def __init__(self, path: pathlib.Path, words: Sequence[str], counts: np.ndarray, records: int):
        self.path, self.words, self.counts, self._records = path, list(words), counts, records

    def __len__(self) -> int:
        return self._records


@checked
def cooccurrences(
    text: Text,
    out: str | os.PathLike[str],
    *,
    min_count: int = 5,
    window: int = 15,
    symmetric: bool = True,
    memory_mb: int = 1024,
) -> Cooccurrences:
    """Counts pairs of words that stand at most `window` words apart in a line, each as 1 / distance, and
    writes the records, by row and column, to the file `out`.

    symmetric: a pair counts for both orders; otherwise the row is the word on the left. Memory stays below
    `memory_mb`: what does not fit is sorted, written beside `out`, and merged at the end.
    """
    if window < 1 or memory_mb < _LEAST_MB:
        raise ArgumentError(
            f"cooccurrences: window must be at least 1 and memory_mb at least {_LEAST_MB}, got {window} and "
            f"{memory_mb}"
        )
    out = pathlib.Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    corpus = Corpus(text, min_count, word2vec=False)
    counter = _core.vectors.Cooccurrences(
        str(out.parent), len(corpus.words), window, symmetric, memory_mb << 20
    )
    for ids in corpus.ids():
        counter.add(ids)
    return Cooccurrences(out, corpus.words, corpus.counts, counter.write(str(out)))


def opened(path: str | os.PathLike[str]) -> np.ndarray:
    """The records of a file, mapped."""
    size = os.path.getsize(path)
    if size % RECORD.itemsize:
        raise FormatError(
            f"'{os.fspath(path)}' cannot be read: its {size} bytes are not records of {RECORD.itemsize}; it "
            "is cut off"
        )
    return np.memmap(path, RECORD, "r") if size else np.empty(0, RECORD)


def shuffled(records: np.ndarray, out: pathlib.Path, seed: int) -> np.ndarray:
    """The records in a random order, in a file: dealt to buckets, each of which is shuffled in memory."""
    rng = np.random.default_rng(seed)
    buckets = max(1, -(-len(records) // _BUCKET))
    parts = [out.with_name(f"{out.name}.{i}") for i in range(buckets)]
    files = [open(part, "wb") for part in parts]
    for at in range(0, len(records), _BUCKET):
        piece = np.asarray(records[at : at + _BUCKET])
        homes = rng.integers(0, buckets, len(piece))
        for i, file in enumerate(files):
            piece[homes == i].tofile(file)
    for file in files:
        file.close()
    with open(out, "wb") as f:
        for part in parts:
            rng.permutation(np.fromfile(part, RECORD)).tofile(f)
            part.unlink()
    return opened(out)
