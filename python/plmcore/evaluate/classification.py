"""Metrics of classes: one label per example, or one per candidate."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any, cast

import numpy as np

from plmcore._core import ArgumentError
from plmcore.evaluate.needed import needed
from plmcore.evaluate.pairs import f_score, paired

AVERAGES = ("binary", "micro", "macro")


def accuracy(predictions: Sequence[Any], references: Sequence[Any]) -> float:
    """The share of examples whose label is right."""
    predictions, references = paired("accuracy", predictions, references)
    return sum(bool(p == r) for p, r in zip(predictions, references)) / len(references)


def f1(
    predictions: Sequence[Any], references: Sequence[Any], average: str = "binary", positive: Hashable = 1
) -> float:
    """2 P R / (P + R). "binary": of the class `positive`; "micro": of all decisions together; "macro": the
    mean over classes.

    The classes of "macro" are those that occur among predictions or references.
    """
    predictions, references = paired("f1", predictions, references)
    if average not in AVERAGES:
        raise ArgumentError(f"f1: average must be one of {', '.join(AVERAGES)}, got {average!r}")
    if average == "binary":
        if len(others := {x for x in (*predictions, *references) if x != positive}) > 1:
            raise ArgumentError(
                f"f1: binary has {positive!r} and one other class, got {sorted(map(str, others))}"
            )
        predictions, references = ([int(x == positive) for x in side] for side in (predictions, references))
    metrics = needed("sklearn.metrics", "f1")
    return float(metrics.f1_score(references, predictions, average=average, zero_division=0.0))


def matthews(predictions: Sequence[Any], references: Sequence[Any]) -> float:
    """Matthews correlation of two labellings, in [-1, 1]; 0 where one of them is constant."""
    predictions, references = paired("matthews", predictions, references)
    return float(needed("sklearn.metrics", "matthews").matthews_corrcoef(references, predictions))


def senses(predictions: Sequence[Any], references: Sequence[Any | Collection[Any]]) -> dict[str, float]:
    """Precision, recall and F1 of word senses: a prediction may be None (not attempted), a reference one
    sense or several right ones.
    """
    predictions, references = paired("senses", predictions, references)
    right = [{r} if isinstance(r, (str, int)) else set(r) for r in references]
    tried = sum(p is not None for p in predictions)
    hits = sum(p is not None and p in r for p, r in zip(predictions, right))
    return f_score(hits, tried, len(references))


def reciprocal_rank(scores: Sequence[Sequence[float]], references: Sequence[int | Collection[int]]) -> float:
    """Mean over examples of 1 / the rank of the best right candidate (MRR).

    scores: of an example's candidates, higher is better.
    references: the number of the right candidate, or of several.

    Among equal scores the right one comes last, so that a constant scorer gains nothing.
    """
    scores, references = paired("reciprocal_rank", scores, references)
    total = 0.0
    for i, (row, right) in enumerate(zip(scores, references)):
        row = np.asarray(row, np.float64)
        right = cast(Any, [right] if isinstance(right, (int, np.integer)) else sorted(right))
        if not right or not all(0 <= r < len(row) for r in right):
            raise ArgumentError(
                f"reciprocal_rank: example {i} has {len(row)} candidates, and the right one is {right}"
            )
        if not np.isfinite(row).all():
            raise ArgumentError(f"reciprocal_rank: the scores of example {i} are not all finite")
        wrong = np.delete(row, right)
        total += 1 / (1 + int((wrong >= row[right].max()).sum()))
    return total / len(scores)
