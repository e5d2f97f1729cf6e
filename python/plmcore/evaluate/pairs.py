"""What metrics ask of their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plmcore._core import ArgumentError, KindError


def paired(metric: str, predictions: Sequence[Any], references: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Both as lists, of one length that is not 0."""
    for name, values in (("predictions", predictions), ("references", references)):
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
            raise KindError(
                f"{metric}: {name} must be a list or an array, one item per example, got "
                f"{type(values).__name__}"
            )
    if len(predictions) != len(references):
        raise ArgumentError(f"{metric}: {len(predictions)} predictions and {len(references)} references")
    if len(predictions) == 0:
        raise ArgumentError(f"{metric}: there are no predictions to score")
    return list(predictions), list(references)


def answers(metric: str, references: Sequence[Any]) -> list[list[str]]:
    """References of which each is a text or several texts, as lists."""
    found = [[r] if isinstance(r, str) else list(r) for r in references]
    for i, texts in enumerate(found):
        if not texts:
            raise ArgumentError(f"{metric}: example {i} has no reference")
        if bad := [t for t in texts if not isinstance(t, str)]:
            raise KindError(
                f"{metric}: a reference must be a text or a list of texts, example {i} has {bad[0]!r}"
            )
    return found


def f_score(hits: float, predicted: float, wanted: float) -> dict[str, float]:
    """Precision, recall and their harmonic mean from counts; 0 where a count is 0."""
    precision = hits / predicted if predicted else 0.0
    recall = hits / wanted if wanted else 0.0
    return {"precision": precision, "recall": recall, "f1": harmonic(precision, recall)}


def harmonic(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b else 0.0
