from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plmcore import nn
from plmcore._core import ArgumentError, Tensor
from plmcore.criteria.criterion import Batch, Criterion, Terms
from plmcore.criteria.labelled import Labelled
from plmcore.nn.state import State


class Carried(Criterion):
    """Another criterion, of a recurrent model that goes on where the batch before ended: it takes `state` and
    gives out.state. Gradients end there.
    """

    def __init__(self, inner: Labelled):
        self.inner, self.squares = inner, inner.squares

    def counts(self, batch: Batch) -> dict[str, int]:
        return self.inner.counts(batch)

    def __call__(self, model: Any, batch: Batch, state: State | None) -> tuple[Terms, State]:
        inputs: dict[str, Any] = model.tensors(batch)
        out = self.inner.predict(model, inputs | {"state": state})
        if out.state is None:
            raise ArgumentError("Carried: the model must give the state after a batch as out.state")
        return self.inner.terms(out, batch, inputs), out.state

    def state(self, tensors: Mapping[str, Tensor]) -> nn.RecurrentState:
        return nn.RecurrentState(tensors["h"], tensors.get("c"))
