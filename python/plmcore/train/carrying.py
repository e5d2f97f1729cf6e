"""Training with a state that goes from batch to batch: XLNet's memory of the text before.

Batches are streams, each row of which goes on where the batch before ended. The state belongs to the loss; the loop keeps it in checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from plmcore import data, nn
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.models.outputs import Output
from plmcore.train.batching import Batch, MeanLoss

CONTINUES = "continues"  # of a batch: whether it goes on where the one before ended


class Continued:
    """Batches of streams that say whether they go on: all but the first of an epoch."""

    def __init__(self, batches: data.Batches):
        self.batches = batches

    def __getitem__(self, step: int) -> Batch:
        return self.batches[step] | {CONTINUES: np.array(self.batches.place(step)[1] > 0)}


class CarriedLoss(MeanLoss):
    """The loss of a model that is given the memory of earlier batches, and what they leave for the next one.

    Of each batch the states of its first `reuse` tokens are remembered, as the next one begins behind those; of all that is remembered
    the last `length` tokens. Gradients end there.
    """

    def __init__(self, model: nn.Module, label_smoothing: float = 0.0, *, length: int, reuse: int):
        if length < 1 or reuse < 1:
            raise ArgumentError(f"a memory needs at least one token, got length {length} and reuse {reuse}")
        super().__init__(model, label_smoothing)
        self.length, self.reuse = length, reuse
        self.state: list[Tensor] | None = None  # [P, B, C] of each layer

    def forward(self, inputs: dict[str, Tensor]) -> Output:
        before = self.state if bool(inputs.pop(CONTINUES).item()) else None
        P = 0 if before is None else before[0].shape[0]
        out = self.model(**inputs, mems=before, use_mems=True)
        if out.mems[0].shape[0] != (kept := P + inputs["input_ids"].shape[1]):
            raise ArgumentError(
                f"training with a memory: the model must keep all {kept} tokens for the loss to choose from, got {out.mems[0].shape[0]}; "
                "set model.mem_len and model.reuse_len to 0"
            )
        end = P + self.reuse
        begin = max(0, end - self.length)
        self.state = [ops.copy(ops.narrow(m, begin, end - begin)).detach() for m in out.mems]
        return out

    def live_state(self) -> dict[str, Any]:
        return {} if self.state is None else {str(i): np.array(m.numpy()) for i, m in enumerate(self.state)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.state = [Tensor(state[str(i)]) for i in range(len(state))] or None
