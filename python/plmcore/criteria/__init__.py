"""What a training step computes, and what it carries to the next one. See docs/objectives.md."""

from __future__ import annotations

from typing import Any

from plmcore.criteria.carried import Carried
from plmcore.criteria.criterion import (
    Batch,
    Counts,
    Criterion,
    Sums,
    Term,
    Terms,
    added,
    counted,
    loss,
    run,
)
from plmcore.criteria.cross_view import CrossView, CrossViewTranslation
from plmcore.criteria.directions import CarriedDirections
from plmcore.criteria.labelled import Labelled, Spans, WithText
from plmcore.criteria.memory import Remembered
from plmcore.criteria.tokens import Bidirectional, Tokens
from plmcore.models import labels

__all__ = [
    "Batch",
    "Bidirectional",
    "Carried",
    "CarriedDirections",
    "Counts",
    "Criterion",
    "CrossView",
    "CrossViewTranslation",
    "Labelled",
    "Remembered",
    "Spans",
    "Sums",
    "Term",
    "Terms",
    "Tokens",
    "WithText",
    "added",
    "counted",
    "loss",
    "of",
    "run",
]


def of(model: Any, label_smoothing: float = 0.0) -> Labelled:
    """The criterion that goes with the kind of labels which the model's head takes first."""
    kind = next(iter(labels.taken(model)), None)
    if kind == labels.BIDIRECTIONAL:
        return Bidirectional(label_smoothing)
    if kind in labels.OF_TOKENS:
        return Tokens(kind, label_smoothing)
    squares = getattr(getattr(model, "config", None), "problem_type", None) == "regression"
    return Labelled(label_smoothing, squares=squares)
