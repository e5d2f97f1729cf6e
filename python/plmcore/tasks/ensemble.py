"""Several models for one task, whose predictions are averaged: ULMFiT's forward and backward ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plmcore._core import ArgumentError

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel

Prediction = Mapping[str, Any]


def averaged(predictions: Sequence[Sequence[Prediction]]) -> list[dict[str, Any]]:
    """One list of each model -> for each text the mean of values, or of probabilities with the likeliest
    class.
    """
    return [_mean(of_text) for of_text in zip(*predictions, strict=True)]


def _mean(found: Sequence[Prediction]) -> dict[str, Any]:
    if all("value" in f for f in found):
        return {"value": float(np.mean([f["value"] for f in found]))}
    if not all("probabilities" in f for f in found):
        raise ArgumentError(
            "the predictions of several models are averaged where they are classes or numbers"
        )
    names = list(found[0]["probabilities"])
    p = np.mean([[f["probabilities"][name] for name in names] for f in found], 0)
    best = int(p.argmax())
    return {
        "label": names[best],
        "probability": float(p[best]),
        "probabilities": dict(zip(names, p.tolist())),
    }


def check_same_classes(lm: LanguageModel, others: Sequence[LanguageModel]) -> None:
    """Models that are averaged must have the same classes, in any order, or all none."""

    def classes(model: LanguageModel) -> set[str]:
        known = model.config.extra.get("id2label") or {}
        n = model.config.num_labels
        return set() if n == 1 else {known.get(str(i), f"LABEL_{i}") for i in range(n)}

    for other in others:
        if classes(other) != classes(lm):
            raise ArgumentError(
                f"models that are averaged must have the same classes: {', '.join(sorted(classes(lm)))}; "
                f"'{other.source}' has {', '.join(sorted(classes(other))) or 'none'}"
            )
