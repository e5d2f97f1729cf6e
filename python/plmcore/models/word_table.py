from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models import spelling


class WordTable(nn.Module):
    """The vectors of words, which do not learn; row 0, of those that are unknown, is 0.
    ids [...] -> [..., D]
    """

    def __init__(self, words: Sequence[str], matrix: np.ndarray):
        self.words = list(words)
        self.matrix = Tensor(np.concatenate([np.zeros((1, matrix.shape[1]), np.float32), matrix]))
        self.numbers = {word: i + 1 for i, word in enumerate(self.words)}

    @property
    def width(self) -> int:
        return int(self.matrix.shape[1])

    def number(self, word: str) -> int:
        """The row of a word, or of the word in lower case."""
        return self.numbers.get(word) or self.numbers.get(word.lower(), 0)

    def __call__(self, ids: Tensor) -> Tensor:
        if self.matrix.device != ids.device:
            self.matrix = self.matrix.to(ids.device)
        return ops.embedding(self.matrix, ids)

    def of_characters(self, ids: Tensor) -> Tensor:
        """Vectors of words that are spelled.  ids [B, T, W] -> [B, T, D]"""
        B, T, W = ids.shape
        rows = np.ascontiguousarray(ids.numpy().reshape(-1, W).astype(np.uint16))
        keys, place = np.unique(rows.view(f"V{2 * int(W)}").reshape(-1), return_inverse=True)
        known = keys.view(np.uint16).reshape(-1, int(W)).astype(np.int64)
        numbers = np.array([self.number(spelling.read(row)) for row in known], np.int64)
        return self(Tensor(numbers[place].reshape(int(B), int(T)), device=ids.device))
