"""Random numbers that are functions of their place: the same (seed, epoch, example, ...) gives the same draw
in any order and process.
"""

from __future__ import annotations

import numpy as np

_STEP = np.uint64(0x9E3779B97F4A7C15)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def bits(*place: int | np.ndarray) -> np.ndarray:
    """64 random bits for every place; the coordinates broadcast against each other."""
    state = np.zeros(1, np.uint64)
    for coordinate in place:
        state = state ^ _unsigned(coordinate)
        state += _STEP
        _scramble(state)
    return state if any(np.ndim(c) for c in place) else state[0]


def uniform(*place: int | np.ndarray) -> np.ndarray:
    """float64 in [0, 1)."""
    return (bits(*place) >> np.uint64(11)) * 2.0**-53


def below(bound: int | np.ndarray, *place: int | np.ndarray) -> np.ndarray:
    """int64 in [0, bound) for bounds up to 2**32, each value within 2**-21 of equally likely."""
    return (uniform(*place) * bound).astype(np.int64)


def _unsigned(coordinate: int | np.ndarray) -> np.ndarray | np.uint64:
    if isinstance(coordinate, int):
        return np.uint64(coordinate % 2**64)
    return np.asarray(coordinate).astype(np.uint64, copy=False)


def _scramble(z: np.ndarray) -> None:
    """SplitMix64's output function (Steele, Lea, Flood 2014), in place."""
    z ^= z >> _SHIFTS[0]
    z *= _MIX[0]
    z ^= z >> _SHIFTS[1]
    z *= _MIX[1]
    z ^= z >> _SHIFTS[2]
