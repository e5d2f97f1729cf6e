"""Words as the bytes of their characters, as ELMo reads them: no word is unknown.

A word is its start, at most width - 2 bytes of UTF-8, its end, and padding. In arrays every id is one more
than here, and 0 is what is not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from plmcore._core import ArgumentError, KindError

SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, PADDING = 256, 257, 258, 259, 260
IDS = 262  # of arrays
LEAST = 4  # the width of one character


def spelled(words: Iterable[str], width: int) -> np.ndarray:
    """int64 [words, width]"""
    rows = [_row(_bytes(word)[: width - 2], width) for word in words]
    return np.stack(rows) if rows else np.zeros((0, width), np.int64)


def edges(width: int) -> np.ndarray:
    """The words before and after a sentence.  int64 [2, width]"""
    return np.stack([_row([SENTENCE_START], width), _row([SENTENCE_END], width)])


def read(row: np.ndarray) -> str:
    """The word of these ids; empty for what is none."""
    return bytes((row[(row >= 1) & (row <= 256)] - 1).astype(np.uint8)).decode("utf-8", "replace")


def sentences_of(
    sentences: Sequence[str] | Sequence[Sequence[str]], width: int
) -> tuple[np.ndarray, list[int]]:
    """Sentences with the words around them, and how many words each has. A text is split at white space.
    int64 [B, T, width]
    """
    if isinstance(sentences, str):
        raise KindError("a list of sentences is needed, each a text or a list of words; got one text")
    rows = [list(s.split() if isinstance(s, str) else s) for s in sentences]
    known = list(dict.fromkeys(word for row in rows for word in row))
    table = np.concatenate([spelled(known, width), edges(width)])
    place = {word: i for i, word in enumerate(known)}
    ids = np.zeros((len(rows), max(map(len, rows), default=0) + 2, width), np.int64)
    for out, row in zip(ids, rows):
        out[: len(row) + 2] = table[[len(known), *(place[word] for word in row), len(known) + 1]]
    return ids, [len(row) for row in rows]


def _bytes(word: str) -> bytes:
    if not isinstance(word, str):
        raise KindError(f"a word must be a text, got {word!r:.60}")
    try:
        return word.encode()
    except UnicodeEncodeError as e:
        raise ArgumentError(f"the word {word!r} has half a surrogate pair at character {e.start}") from None


def _row(characters: Sequence[int] | bytes, width: int) -> np.ndarray:
    n = len(characters)
    row = np.full(width, PADDING, np.int64)
    row[0], row[1 : n + 1], row[n + 1] = WORD_START, list(characters), WORD_END
    return row + 1
