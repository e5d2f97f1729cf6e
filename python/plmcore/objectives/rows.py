"""Rows of unequal lengths, worked on together: an array [B, T] with each text at the left, and lengths [B].

The True places of a mask, read row by row, are the tokens of all texts on end; so `out[mask] = values` fills
rows of any lengths.
"""

from __future__ import annotations

import numpy as np


def inside(lengths: np.ndarray, width: int | None = None) -> np.ndarray:
    """True at the first lengths[b] columns of row b.  bool [B, T]"""
    return np.arange(lengths.max(initial=0) if width is None else width) < lengths[:, None]


def filled(values: np.ndarray, lengths: np.ndarray, fill: int, width: int | None = None) -> np.ndarray:
    """Values of all rows on end, as rows.  [n] -> [B, T]"""
    mask = inside(lengths, width)
    out = np.full(mask.shape, fill, values.dtype)
    out[mask] = values
    return out


def compact(values: np.ndarray, keep: np.ndarray, fill: int) -> tuple[np.ndarray, np.ndarray]:
    """The kept values of each row moved together, and how many there are."""
    lengths = np.count_nonzero(keep, axis=1)
    return filled(values[keep], lengths, fill), lengths


def smallest(keys: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """True at the counts[b] smallest keys of row b.  float [B, T] -> bool [B, T]"""
    if not keys.size:
        return np.zeros(keys.shape, bool)
    limits = np.take_along_axis(np.sort(keys, 1), np.maximum(counts - 1, 0)[:, None], 1)
    return (keys <= limits) & (counts > 0)[:, None]


def shuffled(keys: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The columns below lengths[b] in the order of their keys, then the others in theirs.
    float [B, T] -> int64 [B, T]
    """
    return np.argsort(np.where(inside(lengths, keys.shape[1]), keys, 2.0 + np.arange(keys.shape[1])), axis=1)


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """starts[0], starts[0] + 1, ... counts[0] of them, then those of the next.  [n] -> [sum of counts]"""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(counts.sum())


def counted(groups: np.ndarray, mask: np.ndarray, width: int) -> np.ndarray:
    """How often each group number < width occurs in each row at the True places.
    int [B, T] -> int64 [B, width]
    """
    B = len(groups)
    flat = (groups + np.arange(B)[:, None] * width)[mask]
    return np.bincount(flat, minlength=B * width).reshape(B, width)


def composition(total: np.ndarray, parts: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """total[b] items cut at random into parts[b] parts of at least one, every way equally likely.
    keys [B, max total - 1] -> [B, max parts]
    """
    cuts = smallest(np.where(inside(total - 1, keys.shape[1]), keys, np.inf), parts - 1)
    part = np.pad(np.cumsum(cuts, 1), ((0, 0), (1, 0)))  # of each item
    return counted(part, inside(total, part.shape[1]), int(parts.max(initial=0)))
