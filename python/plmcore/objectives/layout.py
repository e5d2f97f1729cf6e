from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore._core import text as native


class Format:
    """Where a family puts its special tokens around one or two texts, and their token types, as
    tokenizer.build has them.
    """

    def __init__(self, tokenizer: Any, texts: int = 1):
        special = set(np.asarray(tokenizer.special_ids).tolist())
        plain = [i for i in range(len(special) + texts) if i not in special][:texts]
        ids, types = (
            np.asarray(x).tolist() for x in tokenizer.build(*(np.array([i], np.int64) for i in plain))
        )
        at = [ids.index(i) for i in plain]
        edges = [-1, *at, len(ids)]
        self.fixed = [ids[a + 1 : b] for a, b in zip(edges, edges[1:])]  # before, between and after the texts
        self.fixed_types = [types[a + 1 : b] for a, b in zip(edges, edges[1:])]
        self.types = [types[i] for i in at]
        self.ones = [1] * texts
        self.fixed_ones, self.fixed_zeros = ([[n] * len(tokens) for tokens in self.fixed] for n in (1, 0))
        self.specials = len(ids) - texts
        self.has_types = any(types)
        self.left, self.pad = tokenizer.family.padding_side == "left", tokenizer.pad_token_id or 0
        self.pad_type = tokenizer.family.pad_type

    def __call__(self, *lengths: np.ndarray) -> Layout:
        return Layout(self, lengths)


class Layout:
    """A batch of texts of these lengths in their format: which columns hold what."""

    def __init__(self, format: Format, lengths: Sequence[np.ndarray]):
        self.format, self.parts = format, lengths
        self.lengths: np.ndarray = np.add(sum(lengths), format.specials)
        self.width = int(self.lengths.max(initial=0))

    @functools.cached_property
    def shift(self) -> np.ndarray:
        """The first column of each row that is not padding.  [B]"""
        return self.width - self.lengths if self.format.left else np.zeros_like(self.lengths)

    @functools.cached_property
    def within(self) -> np.ndarray:
        """Where tokens of a text stand, not special ones or padding.  bool [B, T]"""
        return self._filled(self.format.ones, self.format.fixed_zeros, 0) == 1

    @functools.cached_property
    def attention_mask(self) -> np.ndarray:
        return self._filled(self.format.ones, self.format.fixed_ones, 0)

    def put(self, *texts: np.ndarray, fill: int) -> np.ndarray:
        """Values of the texts' tokens where those stand, else `fill`.  each [B, T of the text] -> [B, T]"""
        whole = [text.astype(np.int64, copy=False) for text in texts]
        return self._filled(whole, [[fill] * len(tokens) for tokens in self.format.fixed], fill)

    def ids(self, *texts: np.ndarray) -> np.ndarray:
        return self._filled(texts, self.format.fixed, self.format.pad)

    def labels(self, *texts: np.ndarray) -> np.ndarray:
        """Ids, special ones too, with -100 for padding: what a decoder writes."""
        return self._filled(texts, self.format.fixed, -100)

    def inputs(self, *texts: np.ndarray) -> dict[str, np.ndarray]:
        """input_ids, attention_mask, and token_type_ids where the family has them."""
        inputs = {"input_ids": self.ids(*texts), "attention_mask": self.attention_mask}
        if self.format.has_types:
            types = self._filled(self.format.types, self.format.fixed_types, self.format.pad_type)
            inputs["token_type_ids"] = types
        return inputs

    def _filled(
        self, texts: Sequence[np.ndarray | int], fixed: Sequence[Sequence[int]], fill: int
    ) -> np.ndarray:
        """Each row is its texts, or so many of a number, with what is fixed around them."""
        out = np.empty((len(self.lengths), self.width), np.int64)
        native.lay_out(texts, self.parts, fixed, self.format.left, fill, out)
        return out
