from __future__ import annotations

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
        B = len(self.lengths)
        self.shift = self.width - self.lengths if format.left else np.zeros(B, np.int64)
        self.rows = np.arange(B)
        starts, at = [], self.shift
        for fixed, length in zip(format.fixed, lengths):
            at = at + len(fixed)
            starts.append(at)
            at = at + length
        self.starts = starts  # first column of each text, [B]
        columns = np.arange(self.width)
        self.masks = [(columns >= s[:, None]) & (columns < (s + n)[:, None]) for s, n in zip(starts, lengths)]
        self.attention_mask = (
            (columns >= self.shift[:, None]) & (columns < (self.shift + self.lengths)[:, None])
        ).astype(np.int64)

    def put(self, *texts: np.ndarray, fill: int) -> np.ndarray:
        """Values of the texts' tokens where those stand, `fill` elsewhere.  each [B, T of the text] -> [B, T]"""
        out = np.full((len(self.rows), self.width), fill, np.int64)
        for text, mask, length in zip(texts, self.masks, self.parts):
            out[mask] = text[rows.inside(length, text.shape[1])]
        return out

    def ids(self, *texts: np.ndarray) -> np.ndarray:
        return self._with_fixed(self.put(*texts, fill=self.format.pad), self.format.fixed)

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
