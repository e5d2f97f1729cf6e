"""Word vectors as GloVe writes them: a line with a word and its numbers for each. Words may have spaces."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from plmcore.files.text import opened
from plmcore.files.whole import atomic_write
from plmcore.formats import word_vectors
from plmcore.formats.registry import Format
from plmcore.formats.word_vectors import header, numbers_follow, wrong


def known(start: bytes) -> bool:
    """A word and numbers, at least one of which has a point."""
    return header(start) is None and numbers_follow(start, point=True)


def read(path: pathlib.Path, mapped: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """The tensors of word_vectors. The first line, whose word has no space, says the dimensions."""
    words, vectors = [], []
    with opened(path) as f:
        first = f.readline(1 << 22)
        dim = len(first.split()) - 1
        if dim < 1:
            raise wrong(path, "its first line must have a word and numbers")
        for word, vector in word_vectors.rows(path, itertools.chain([first], f), dim, 1, spaces=True):
            words.append(word)
            vectors.append(vector)
    return word_vectors.checked(path, words, np.array(vectors, np.float32)), {}


def write(
    path: pathlib.Path,
    tensors: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    max_shard_bytes: int | None = None,
) -> list[pathlib.Path]:
    words, matrix = word_vectors.to_write(tensors, spaces=True)
    order = list(range(len(words)))
    if words and b" " in words[0]:  # the first line tells the dimensions
        order.sort(key=lambda i: b" " in words[i])
    with atomic_write(path) as f:
        for i in order:
            f.write(words[i] + b" " + word_vectors.in_text(matrix[i]) + b"\n")
    return [path]


FORMAT = Format(known=known, endings=(".glove.txt",), read=read, write=write)
