from __future__ import annotations

from typing import Any

import numpy as np

from plmcore._core import text as native
from plmcore.objectives import rows


class Text:
    """The documents of a corpus on end, with `separator` after each where one is given.

    Places count tokens and separators.
    """

    def __init__(self, corpus: Any, separator: int | None = None):
        self.corpus, self.separator = corpus, separator
        self.size = len(corpus.ids)
        self.ends: Any = None
        if separator is not None:
            self.ends = corpus.documents[1:] + np.arange(1, len(corpus.documents))  # after the separator
            self.size += len(self.ends)

    def take(self, starts: np.ndarray, lengths: np.ndarray, fill: int) -> np.ndarray:
        """The tokens from each start, with `fill` beyond the lengths.  -> int64 [B, T]"""
        out = np.empty((len(starts), int(lengths.max(initial=0))), np.int64)
        native.take(self.corpus.ids, self.ends, self.separator or 0, starts, lengths, fill, out)
        return out

    def tokens(self, starts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Which token of the corpus stands at each column,
        and where a separator does instead (None: nowhere).  [B, T]
        """
        columns = np.arange(lengths.max(initial=0))
        if self.separator is None:
            return starts[:, None] + columns, None
        first, last = (np.searchsorted(self.ends, x, side="right") for x in (starts, starts + lengths))
        tokens, inner = (starts - first)[:, None] + columns, last - first
        mixed = np.flatnonzero(inner)
        if not len(mixed):
            return tokens, None
        row, document = np.repeat(np.arange(len(starts)), inner), rows.ranges(first, inner)
        between = np.zeros(tokens.shape, bool)
        between[row, self.ends[document] - 1 - starts[row]] = True
        tokens[mixed, 1:] -= np.cumsum(between[mixed, :-1], 1)
        return tokens, between

    def sentence_starts(self, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Where a sentence begins; the first column of a row counts as one.  bool [B, T]"""
        tokens, between = self.tokens(starts, lengths)
        sentences = self.corpus.sentences
        low = np.searchsorted(sentences, tokens[:, 0], side="left")
        high = np.searchsorted(sentences, tokens[:, -1], side="right")
        row, sentence = np.repeat(np.arange(len(starts)), high - low), rows.ranges(low, high - low)
        begins = np.zeros(tokens.shape, bool)
        begins[row, sentences[sentence] - tokens[row, 0]] = True  # by token, then by column
        begins = np.take_along_axis(begins, tokens - tokens[:, :1], 1)
        if between is not None:
            begins &= ~between
        begins[:, 0] = True
        return begins & rows.inside(lengths)
