"""Which tokens a masked language model predicts:
single tokens, or units (words, n-grams, marked phrases) as a whole.

`able` says which tokens may be chosen, `starts` where units begin; both bool [B, T]. So is the answer.
"""

from __future__ import annotations

import numpy as np

from plmcore._core import text as native
from plmcore.objectives import rows
from plmcore.objectives.rng import Rng


def exact_tokens(able: np.ndarray, counts: np.ndarray, rng: Rng) -> np.ndarray:
    """counts[b] of row b, every set equally likely; all of them where there are fewer."""
    keys = np.where(able, rng.uniform("choose", able.shape[1]), np.inf)
    return rows.smallest(keys, np.minimum(counts, np.count_nonzero(able, axis=1))) & able


def units(starts: np.ndarray, able: np.ndarray, rate: float, rng: Rng) -> np.ndarray:
    """Each unit with probability `rate`."""
    unit = number(starts)
    chosen = rng.uniform("choose", starts.shape[1]) < rate  # by unit
    return np.take_along_axis(chosen, unit, 1) & able


def exact_units(starts: np.ndarray, able: np.ndarray, counts: np.ndarray, rng: Rng) -> np.ndarray:
    """Units in random order, as long as they fit into counts[b] tokens; one that does not is passed over."""
    chosen = np.empty(starts.shape, bool)
    native.choose_units(starts, able, rng.uniform("choose", starts.shape[1]), counts, chosen)
    return chosen


def number(starts: np.ndarray) -> np.ndarray:
    """The unit of each token, 0, 1, ...; what comes before the first start belongs to the first unit."""
    return np.maximum(np.cumsum(starts, 1) - 1, 0)


def word_starts(ids: np.ndarray, able: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Where words begin: at tokens that begin one, at the first of a row, and after a special token."""
    starts = table[ids]
    starts[:, 0] = True
    starts[:, 1:] |= ~able[:, :-1]
    return starts | ~able


def ngram_starts(starts: np.ndarray, able: np.ndarray, longest: int, rng: Rng) -> np.ndarray:
    """Units joined to n-grams of 1 to `longest`, n drawn with weight 1/n. No n-gram holds a special token."""
    T = starts.shape[1]
    lengths = 1 + rng.pick(tuple(1 / n for n in range(1, longest + 1)), "n-gram", T)  # [B, T], by n-gram
    heads = np.zeros((len(starts), T + 1), bool)  # by unit: the first of an n-gram
    at = np.minimum(np.cumsum(lengths, 1) - lengths, T)
    np.put_along_axis(heads, at, True, 1)
    first = np.take_along_axis(heads, number(starts), 1) & starts
    first[:, 0] = True
    first[:, 1:] |= ~able[:, :-1]
    return first | ~able


def span_starts(starts: np.ndarray, tokens: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Units, but each marked span is one.  tokens: numbers in the corpus, [B, T]; spans [n, 2]: first and
    after the last, in order
    """
    span = np.searchsorted(spans[:, 0], tokens, side="right") - 1
    span = np.where((span >= 0) & (tokens < spans[:, 1].take(span, mode="clip")), span, -1)
    out = starts.copy()
    out[:, 1:][(span[:, 1:] == span[:, :-1]) & (span[:, 1:] >= 0)] = False
    out[:, 1:][span[:, 1:] != span[:, :-1]] = True
    return out
