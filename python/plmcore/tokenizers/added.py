"""Tokens that are cut out of a text before a library sees it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

Row = tuple[np.ndarray, np.ndarray, np.ndarray]  # ids [n], offsets [n, 2], words [n]


class AddedTokens:
    """Token -> id. Where two begin at one place the longer is meant."""

    def __init__(self, ids: Mapping[str, int] = {}):
        self.ids = dict(ids)
        longest_first = sorted(self.ids, key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def inside(self, texts: Sequence[str]) -> bool:
        return self.pattern is not None and any(map(self.pattern.search, texts))

    def cut(self, text: str) -> list[tuple[int, str, int | None]]:
        """Start, text and id (None: not an added token) of the parts."""
        parts, end = [], 0
        for found in self.pattern.finditer(text):
            if found.start() > end:
                parts.append((end, text[end : found.start()], None))
            parts.append((found.start(), found[0], self.ids[found[0]]))
            end = found.end()
        if end < len(text):
            parts.append((end, text[end:], None))
        return parts

    def ids_of(self, texts: Sequence[str], encode: Callable[[list[str]], list[np.ndarray]]) -> list[np.ndarray]:
        """`encode` of what lies between the added tokens, with their ids in between."""
        if not self.inside(texts):
            return encode(list(texts))
        cut = [self.cut(text) for text in texts]
        between = iter(encode([part for parts in cut for _, part, id in parts if id is None]))
        rows = []
        for parts in cut:
            row = [next(between) if id is None else np.array([id], np.int32) for _, _, id in parts]
            rows.append(np.concatenate(row) if row else np.zeros(0, np.int32))
        return rows

    def rows_of(self, texts: Sequence[str], encode: Callable[[list[str]], list[Row]]) -> list[Row]:
        """The same with offsets and words."""
        if not self.inside(texts):
            return encode(list(texts))
        return [self._joined(text, encode) for text in texts]

    def _joined(self, text: str, encode: Callable[[list[str]], list[Row]]) -> Row:
        parts: list[Row] = [(np.zeros(0, np.int32), np.zeros((0, 2), np.int64), np.zeros(0, np.int64))]
        word = 0
        for start, part, id in self.cut(text):
            if id is None:
                ids, offsets, words = encode([part])[0]
            else:
                ids, offsets, words = np.array([id], np.int32), np.array([[0, len(part)]]), np.zeros(1, np.int64)
            parts.append((ids, offsets + start, words + word))
            word = int(parts[-1][2][-1]) + 1 if len(words) else word
        ids, offsets, words = zip(*parts)
        return np.concatenate(ids), np.concatenate(offsets), np.concatenate(words)
