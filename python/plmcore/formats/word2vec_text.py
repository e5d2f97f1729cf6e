"""Word vectors as word2vec writes them: "V dim\\n", then a line with a word and its numbers for each."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from plmcore.files.text import opened
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


FORMAT = Format(
    known=known, endings=(".w2v.txt",), read=read, write=word_vectors.word2vec_writer(word_vectors.in_text)
)
