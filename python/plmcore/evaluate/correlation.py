"""Correlations of predicted and true numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.evaluate.needed import needed
from plmcore.evaluate.pairs import paired


def pearson(predictions: Sequence[float], references: Sequence[float]) -> float:
    """Linear correlation, in [-1, 1]."""
    x, y = _numbers("pearson", predictions, references)
    return _correlation(needed("scipy.stats", "pearson").pearsonr, x, y)


def spearman(predictions: Sequence[float], references: Sequence[float]) -> float:
    """Correlation of ranks, in [-1, 1]; equal numbers share the mean of their ranks."""
    x, y = _numbers("spearman", predictions, references)
    return _correlation(lambda x, y: np.corrcoef(_ranks(x), _ranks(y))[0, 1:], x, y)


def _ranks(x: np.ndarray) -> np.ndarray:
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]


def _correlation(of: Any, x: np.ndarray, y: np.ndarray) -> float:
    """A constant side correlates with nothing: 0, as a model that predicts one number for all deserves."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(of(x, y)[0])


def _numbers(
    metric: str, predictions: Sequence[float], references: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    x, y = (np.asarray(side, np.float64) for side in paired(metric, predictions, references))
    if x.ndim != 1 or y.ndim != 1 or len(x) < 2:
        raise ArgumentError(
            f"{metric}: two lists of at least two numbers, got shapes {x.shape} and {y.shape}"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ArgumentError(f"{metric}: the numbers must be finite")
    return x, y
