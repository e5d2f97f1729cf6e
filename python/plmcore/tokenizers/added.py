"""Tokens that are cut out of a text before a library sees it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Flat = tuple[np.ndarray, np.ndarray]  # ids of all texts on end int32 [n], how many each has [texts]
Row = tuple[np.ndarray, np.ndarray, np.ndarray]  # ids [n], offsets [n, 2], words [n]


class AddedTokens:
    """Token -> id. Where two begin at one place the longer is meant."""

    def __init__(self, ids: Mapping[str, int] = {}):
        self.ids = dict(ids)
        longest_first = sorted(self.ids, key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def cut(self, text: str) -> list[tuple[int, str, int | None]]:
        """Start, text and id (None: not an added token) of the parts."""
        parts: list[tuple[int, str, int | None]] = []
        end = 0
        for found in self.pattern.finditer(text) if self.pattern else ():
            if found.start() > end:
                parts.append((end, text[end : found.start()], None))
            parts.append((found.start(), found[0], self.ids[found[0]]))
            end = found.end()
        if end < len(text):
            parts.append((end, text[end:], None))
        return parts

    def flat_of(self, texts: Sequence[str], encode: Callable[[list[str]], Flat]) -> Flat:
        """`encode` of what lies between the added tokens, with their ids in between."""
        holding = self._holding(texts)
        if not holding:
            return encode(list(texts))
        plain: list[str] = []  # what is encoded
        owners: list[int] = []  # the text of each part
        tokens: list[tuple[int, int, int]] = []  # parts before it, id, text
        for i, text in enumerate(texts):
            if i not in holding:
                plain.append(text)
                owners.append(i)
                continue
            for _, part, id in self.cut(text):
                if id is None:
                    plain.append(part)
                    owners.append(i)
                else:
                    tokens.append((len(plain), id, i))
        ids, lengths = encode(plain)
        before, new, texts_of_new = np.array(tokens).T
        ends = np.concatenate([[0], np.cumsum(lengths)])
        counts = np.bincount(texts_of_new, minlength=len(texts))
        np.add.at(counts, owners, lengths)
        return np.insert(ids, ends[before], new), counts

    def rows_of(self, texts: Sequence[str], encode: Callable[[list[str]], list[Row]]) -> list[Row]:
        """Rows with offsets and words, `encode` called once; only texts that hold added tokens are taken
        apart and joined.
        """
        holding = self._holding(texts)
        if not holding:
            return encode(list(texts))
        cut = {i: self.cut(texts[i]) for i in holding}
        between = [part for parts in cut.values() for _, part, id in parts if id is None]
        others = [text for i, text in enumerate(texts) if i not in cut]
        found = iter(encode([*between, *others]))
        joined = {
            i: _joined_rows([(*part, None if part[2] is not None else next(found)) for part in parts])
            for i, parts in cut.items()
        }
        return [joined[i] if i in joined else next(found) for i in range(len(texts))]

    def _holding(self, texts: Sequence[str]) -> dict[int, None]:
        """Which texts hold added tokens, in order."""
        if self.pattern is None or not self.pattern.search(
            "\n".join(texts)
        ):  # one search is quicker than many
            return {}
        return {i: None for i, text in enumerate(texts) if self.pattern.search(text)}


def _joined_rows(parts: Sequence[tuple[Any, ...]]) -> Row:
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
