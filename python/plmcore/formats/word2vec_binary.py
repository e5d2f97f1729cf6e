"""Word vectors of word2vec with -binary 1: "V dim\\n", then word, space, float32 [dim] for each."""

from __future__ import annotations

import mmap
import pathlib
from typing import Any

import numpy as np

from plmcore.files.whole import open_regular
from plmcore.formats import word_vectors
from plmcore.formats.registry import START, Format
from plmcore.formats.word_vectors import MAX_DIM, header, numbers_follow, wrong


def known(start: bytes) -> bool:
    """A header, and behind the first word something that is not text."""
    return header(start) is not None and not numbers_follow(start.partition(b"\n")[2])


def read(path: pathlib.Path, mapped: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """The tensors of word_vectors."""
    with open_regular(path) as f:
        start = f.read(START)
        sizes = header(start)
        if sizes is None:
            raise wrong(path, "its first line must have the numbers of words and of dimensions")
        count, dim = sizes
        if not 1 <= dim <= MAX_DIM:
            raise wrong(path, f"vectors must have 1 to {MAX_DIM} dimensions, got {dim}")
        with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if count * (4 * dim + 2) > len(data):
                raise wrong(path, f"it has {len(data)} bytes, too few for {count} words of {dim} dimensions")
            words, matrix = [], np.empty((count, dim), np.float32)
            at = start.index(b"\n") + 1
            for row in range(count):
                end = data.find(b" ", at)
                if end < 0 or end + 1 + 4 * dim > len(data):
                    raise wrong(path, f"it ends in word {row + 1} of {count}")
                words.append(data[at:end].lstrip(b"\n"))
                at = end + 1 + 4 * dim
                matrix[row] = np.frombuffer(data[end + 1 : at], "<f4")
            if data[at:].strip(b"\n"):
                raise wrong(path, f"it goes on behind its {count} words")
    return word_vectors.checked(path, words, matrix), {}


FORMAT = Format(
    known=known, endings=(".w2v",), read=read, write=word_vectors.word2vec_writer(np.ndarray.tobytes)
)
