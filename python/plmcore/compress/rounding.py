"""Rows of a matrix as int8 with one scale each, symmetric around 0.

    scale[n] = max |w[n]| / 127        q[n, k] = rint(w[n, k] / scale[n]), from -127 to 127

in float32. A row of zeros has the scale 0, and stays zeros. |w - q scale| <= scale / 2, so that a row's error
is at most 1/254 of its largest value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

LEVELS = 127  # -128 is left out: rows are symmetric, and a sum of products of two of them has a bound
BLOCK = 1 << 22  # values that are converted at once


def row_scales(weight: np.ndarray) -> np.ndarray:
    """float32 [N] of a matrix [N, K]; nan or inf where the row has one."""
    scale = np.zeros(len(weight), np.float32)
    if weight.shape[1]:
        for rows in blocks(weight):
            part = weight[rows].astype(np.float32, copy=False)
            scale[rows] = np.maximum(part.max(1), -part.min(1)) / np.float32(LEVELS)
    return scale


def round_rows(weight: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """int8 [N, K]"""
    q = np.zeros(weight.shape, np.int8)
    step = np.where(scale > 0, scale, 1)[:, None]  # a row of zeros, or of values whose scale is none: zeros
    for rows in blocks(weight):
        part = weight[rows].astype(np.float32, copy=False) / step[rows]
        np.rint(part, out=part)
        np.clip(part, -LEVELS, LEVELS, out=part)
        part[scale[rows] == 0] = 0
        q[rows] = part
    return q


def blocks(weight: np.ndarray) -> Iterator[slice]:
    """Slices of its rows."""
    step = max(1, BLOCK // max(1, weight.shape[1]))
    return (slice(i, i + step) for i in range(0, len(weight), step))
