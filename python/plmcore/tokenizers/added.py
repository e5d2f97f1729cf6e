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
        return self._around(texts, encode, _joined_ids)

    def rows_of(self, texts: Sequence[str], encode: Callable[[list[str]], list[Row]]) -> list[Row]:
        """The same with offsets and words."""
        return self._around(texts, encode, _joined_rows)

    def _around(self, texts: Sequence[str], encode: Callable[[list[str]], list], join: Callable) -> list:
        """`encode` in one call; only texts that hold added tokens are taken apart and joined."""
        holding = [] if self.pattern is None else [i for i, text in enumerate(texts) if self.pattern.search(text)]
        if not holding:
            return encode(list(texts))
        cut = {i: self.cut(texts[i]) for i in holding}
        between = [part for parts in cut.values() for _, part, id in parts if id is None]
        others = [text for i, text in enumerate(texts) if i not in cut]
        found = iter(encode([*between, *others]))
        joined = {
            i: join([(*part, None if part[2] is not None else next(found)) for part in parts])
            for i, parts in cut.items()
        }
        return [joined[i] if i in joined else next(found) for i in range(len(texts))]


def _joined_ids(parts: Sequence[tuple]) -> np.ndarray:
    return np.concatenate([np.array([id], np.int32) if row is None else row for _, _, id, row in parts])


def _joined_rows(parts: Sequence[tuple]) -> Row:
    rows: list[Row] = []
    word = 0
    for start, part, id, row in parts:
        if row is None:
            row = np.array([id], np.int32), np.array([[0, len(part)]]), np.zeros(1, np.int64)
        ids, offsets, words = row
        rows.append((ids, offsets + start, words + word))
        word = int(rows[-1][2][-1]) + 1 if len(words) else word
    ids, offsets, words = zip(*rows)
    return np.concatenate(ids), np.concatenate(offsets), np.concatenate(words)
