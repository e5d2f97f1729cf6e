"""Word vectors as word2vec writes them: "V dim\\n", then a line with a word and its numbers for each."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from plmcore.files.text import opened
from plmcore.files.whole import atomic_write
from plmcore.formats import word_vectors
from plmcore.formats.registry import Format
from plmcore.formats.word_vectors import MAX_DIM, header, numbers_follow, wrong


def known(start: bytes) -> bool:
    """A header, and behind the first word numbers."""
    return header(start) is not None and numbers_follow(start.partition(b"\n")[2])


def read(path: pathlib.Path, mapped: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """The tensors of word_vectors."""
    with opened(path) as f:
        sizes = header(f.readline(64))
        if sizes is None or not 1 <= sizes[1] <= MAX_DIM:
            raise wrong(
                path, f"its first line must have the numbers of words and of 1 to {MAX_DIM} dimensions"
            )
        words, vectors = [], []
        for word, vector in word_vectors.rows(path, iter(f), sizes[1], 2, spaces=False):
            words.append(word)
            vectors.append(vector)
    if len(words) != sizes[0]:
        raise wrong(path, f"it has {len(words)} words, and its first line says {sizes[0]}")
    matrix = np.array(vectors, np.float32).reshape(len(words), sizes[1])
    return word_vectors.checked(path, words, matrix), {}


def write(
    path: pathlib.Path,
    tensors: Mapping[str, Any],
    metadata: Mapping[str, str] | None = None,
    max_shard_bytes: int | None = None,
) -> list[pathlib.Path]:
    words, matrix = word_vectors.to_write(tensors, spaces=False)
    with atomic_write(path) as f:
        f.write(b"%d %d\n" % matrix.shape)
        for word, row in zip(words, matrix, strict=True):
            f.write(word + b" " + " ".join(map(str, row)).encode() + b"\n")
    return [path]


FORMAT = Format(known=known, endings=(".w2v.txt",), read=read, write=write)
