"""Criteria of tokens: what stands somewhere in a text. models/labels.py says what labels mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plmcore import losses
from plmcore._core import Tensor, ops
from plmcore.criteria.criterion import Batch, needed
from plmcore.criteria.labelled import Labelled, Tensors, known
from plmcore.models import labels as kinds
from plmcore.models.outputs import Output


class Tokens(Labelled):
    """The tokens that `labels` name and, where the batch has labels of whole sequences, those too.

    `kind`: the convention of the labels, which says where each is predicted.
    """

    def __init__(self, kind: str, label_smoothing: float = 0.0):
        super().__init__(label_smoothing)
        self.kind = kind

    def counts(self, batch: Batch) -> dict[str, int]:
        labels = needed(self, batch, "labels")
        found = {"labels": known(labels[..., 1:] if self.kind == kinds.NEXT else labels)}
        return found | {name: len(batch[name]) for name in kinds.OF_SEQUENCES if name in batch}

    def predict(self, model: Any, inputs: Tensors) -> Output:
        return model(**(kinds.without_loss(model, inputs) if self.label_smoothing else inputs))

    def means(self, out: Output, inputs: Tensors) -> Mapping[str, Tensor]:
        """Labels of tokens share some of their certainty with all others; those of sequences do not."""
        if not self.label_smoothing:
            return out.losses
        placed = kinds.placed(self.kind, inputs["labels"])
        smoothed = losses.cross_entropy(kinds.token_logits(out), placed, label_smoothing=self.label_smoothing)
        found = {"labels": smoothed}
        for name, logits in kinds.OF_SEQUENCES.items():
            if name in inputs:
                found[name] = ops.cross_entropy(out[logits], ops.reshape(inputs[name], (inputs[name].size,)))
        return found


class Bidirectional(Labelled):
    """Each token from those before it and, apart, from those after it (ELMo): the labels are where they are
    predicted, and the model gives a loss of either.
    """

    def counts(self, batch: Batch) -> dict[str, int]:
        return {name: known(needed(self, batch, name)) for name in kinds.DIRECTIONS}

    def predict(self, model: Any, inputs: Tensors) -> Output:
        if not self.label_smoothing:
            return model(**inputs)
        return model(**{name: t for name, t in inputs.items() if name not in kinds.DIRECTIONS})

    def means(self, out: Output, inputs: Tensors) -> Mapping[str, Tensor]:
        if not self.label_smoothing:
            return out.losses
        return {
            name: losses.cross_entropy(out[logits], inputs[name], label_smoothing=self.label_smoothing)
            for name, logits in kinds.DIRECTIONS.items()
        }
