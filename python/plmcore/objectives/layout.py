from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from plmcore.objectives import rows


class Format:
    """Where a family puts its special tokens around one or two texts, and their token types, as tokenizer.build has them."""

    def __init__(self, tokenizer, texts: int = 1):
        special = set(np.asarray(tokenizer.special_ids).tolist())
        plain = [i for i in range(len(special) + texts) if i not in special][:texts]
        ids, types = (np.asarray(x).tolist() for x in tokenizer.build(*(np.array([i], np.int64) for i in plain)))
        at = [ids.index(i) for i in plain]
        edges = [-1, *at, len(ids)]
        self.fixed = [ids[a + 1 : b] for a, b in zip(edges, edges[1:])]  # before, between and after the texts
        self.fixed_types = [types[a + 1 : b] for a, b in zip(edges, edges[1:])]
        self.types = [types[i] for i in at]
        self.specials = len(ids) - texts
        self.has_types = any(types)
        self.left, self.pad = tokenizer.padding_side == "left", tokenizer.pad_token_id or 0
        self.pad_type = tokenizer.family.pad_type

    def __call__(self, *lengths: np.ndarray) -> Layout:
        return Layout(self, lengths)


class Layout:
    """A batch of texts of these lengths in their format: which columns hold what."""

    def __init__(self, format: Format, lengths: Sequence[np.ndarray]):
        self.format, self.parts = format, lengths
        self.lengths = sum(lengths) + format.specials
        self.width = int(self.lengths.max(initial=0))
        self.rows = np.arange(len(self.lengths))
        self.shift = self.width - self.lengths if format.left else np.zeros_like(self.lengths)
        self.starts, at = [], self.shift  # first column of each text, [B]
        for fixed, length in zip(format.fixed, lengths):
            self.starts.append(at + len(fixed))
            at = self.starts[-1] + length

    @functools.cached_property
    def masks(self) -> list[np.ndarray]:
        """Where the tokens of each text stand.  bool [B, T]"""
        columns = np.arange(self.width)
        return [(columns >= s[:, None]) & (columns < (s + n)[:, None]) for s, n in zip(self.starts, self.parts)]

    @functools.cached_property
    def attention_mask(self) -> np.ndarray:
        columns = np.arange(self.width)
        ends = (self.shift + self.lengths)[:, None]
        return ((columns < ends) & (columns >= self.shift[:, None]) if self.format.left else columns < ends).astype(
            np.int64
        )

    def put(self, *texts: np.ndarray, fill: int) -> np.ndarray:
        """Values of the texts' tokens where those stand, `fill` elsewhere.  each [B, T of the text] -> [B, T]"""
        out = np.full((len(self.rows), self.width), fill, np.int64)
        for k, (text, length) in enumerate(zip(texts, self.parts)):
            real = rows.inside(length, text.shape[1])
            if k == 0 and not self.format.left:  # all begin in one column
                first = len(self.format.fixed[0])
                out[:, first : first + text.shape[1]] = np.where(real, text, fill)
            else:
                out[self.masks[k]] = text[real]
        return out

    def ids(self, *texts: np.ndarray) -> np.ndarray:
        return self._with_fixed(self.put(*texts, fill=self.format.pad), self.format.fixed)

    def labels(self, *texts: np.ndarray) -> np.ndarray:
        """Ids, special ones too, with -100 for padding: what a decoder writes."""
        return self._with_fixed(self.put(*texts, fill=-100), self.format.fixed)

    def inputs(self, *texts: np.ndarray) -> dict[str, np.ndarray]:
        """input_ids, attention_mask, and token_type_ids where the family has them."""
        inputs = {"input_ids": self.ids(*texts), "attention_mask": self.attention_mask}
        if self.format.has_types:
            types = np.full((len(self.rows), self.width), self.format.pad_type)
            for mask, value in zip(self.masks, self.format.types):
                types[mask] = value
            inputs["token_type_ids"] = self._with_fixed(types, self.format.fixed_types)
        return inputs

    def _with_fixed(self, out: np.ndarray, fixed: Sequence[Sequence[int]]) -> np.ndarray:
        at = self.shift
        for k, values in enumerate(fixed):
            for j, value in enumerate(values):
                out[self.rows, at + j] = value
            if k < len(self.parts):
                at = self.starts[k] + self.parts[k]
        return out
