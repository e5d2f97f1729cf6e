from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from plmcore import losses
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.criteria.criterion import Batch, Criterion, Term, Terms, needed
from plmcore.criteria.labelled import known
from plmcore.models.layer_states import LayerStates
from plmcore.nn.state import State


class Carried(Criterion):
    """Each token from those before it, by a recurrent model that goes on from the state after the batch
    before (AWD-LSTM). The last token of a row is predicted and not read: the next batch begins with it.

    ar, tar: weights of the mean square of what the output layer reads, after dropout, and of the steps of the
    raw top layer, h_{t+1} - h_t (Merity et al. 2017).
    """

    def __init__(self, label_smoothing: float = 0.0, *, ar: float = 0.0, tar: float = 0.0):
        if not ar >= 0 or not tar >= 0:
            raise ArgumentError(f"the penalties must not be negative, got ar {ar} and tar {tar}")
        self.label_smoothing, self.ar, self.tar = label_smoothing, ar, tar

    def counts(self, batch: Batch) -> dict[str, int]:
        labels: np.ndarray = needed(self, batch, "labels")
        B, T = labels.shape
        if T < 2:
            raise ArgumentError(
                f"a row must have two tokens or more, one to read and one to predict, got {T}"
            )
        found = {"labels": known(labels[:, 1:])}
        found |= {"ar": B * (T - 1)} if self.ar else {}
        return found | ({"tar": B * (T - 2)} if self.tar else {})

    def __call__(self, model: Any, batch: Batch, state: State | None) -> tuple[Terms, State]:
        B, T = batch["labels"].shape
        if state is not None:
            state.check_batch(B)
        inputs = model.tensors(batch)
        ids, labels = inputs["input_ids"], inputs["labels"]
        out = model(ops.slice(ids, 1, 0, T - 1), state=state)
        following = ops.slice(labels, 1, 1, T)
        means = {"labels": losses.cross_entropy(out.logits, following, label_smoothing=self.label_smoothing)}
        if self.ar:
            means["ar"] = squared(out.dropped_hidden_state, self.ar)
        if self.tar:
            top = out.last_hidden_state  # [B, T - 1, C]
            steps = ops.sub(ops.slice(top, 1, 1, T - 1), ops.slice(top, 1, 0, T - 2))
            means["tar"] = squared(steps, self.tar)
        return {name: Term.of_mean(means[name], n) for name, n in self.counts(batch).items()}, out.state

    def state(self, tensors: Mapping[str, Tensor]) -> LayerStates:
        return LayerStates.named(tensors)


def squared(x: Tensor, weight: float) -> Tensor:
    """weight · mean(x²)"""
    return ops.affine(ops.mean(ops.mul(x, x)), weight, 0.0)
