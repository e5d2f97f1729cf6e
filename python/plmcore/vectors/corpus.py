"""A text as word vectors see it: words between white space, counted, then ids in a file."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Iterator

import numpy as np

from plmcore._core import ArgumentError, FormatError
from plmcore._core.vectors import Vocabulary
from plmcore.files.text import files_in, opened
from plmcore.files.whole import atomic_write

Text = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
_CHUNK = 1 << 20


class Corpus:
    """The words of text files and folders that are seen `min_count` times, by falling count.

    word2vec: as the original program has it. "</s>", the end of a line, is the first word; equal counts stay
    in order of appearance; the word that the text ends with does not count. Otherwise as GloVe has it: equal
    counts by bytes, ids from 1, a line end is no word.
    """

    def __init__(self, text: Text, min_count: int, *, word2vec: bool):
        if min_count < 1:
            raise ArgumentError(f"min_count must be at least 1, got {min_count}")
        self.files, self._last = files_in(text), not word2vec
        self._vocabulary = Vocabulary(word2vec)
        for chunk in self._chunks():
            self._vocabulary.count(chunk)
        self._vocabulary.sort(min_count, not word2vec, self._last)
        self.counts = np.array(self._vocabulary.counts, np.int64)
        self.words = []
        for word in self._vocabulary.words:
            try:
                self.words.append(word.decode())
            except UnicodeDecodeError:
                raise FormatError(f"the text has a word that is not UTF-8: {word[:60]!r}") from None
        if len(self.words) < (3 if word2vec else 2):
            raise ArgumentError(
                f"the text must have at least two words that are seen {min_count} times, got "
                f"{len(self.words) - word2vec}"
            )

    def _chunks(self) -> Iterator[bytes]:
        """The files on end, each in lines of its own."""
        for number, file in enumerate(self.files):
            last = b"\n"
            with opened(file) as f:
                while chunk := f.read(_CHUNK):
                    yield chunk
                    last = chunk[-1:]
            if last != b"\n" and number + 1 < len(self.files):
                yield b"\n"

    def ids(self) -> Iterator[np.ndarray]:
        """The text as int32 ids, piece by piece."""
        for chunk in self._chunks():
            yield np.frombuffer(self._vocabulary.encode(chunk), np.int32)
        yield np.frombuffer(self._vocabulary.end(self._last), np.int32)

    def write(self, path: pathlib.Path) -> None:
        """The ids in a file."""
        with atomic_write(path) as f:
            for piece in self.ids():
                f.write(piece.tobytes())
