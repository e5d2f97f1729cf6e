from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plmcore import nn
from plmcore._core import Tensor
from plmcore.criteria.criterion import Batch, Terms
from plmcore.criteria.tokens import Bidirectional
from plmcore.nn.state import State


class CarriedDirections(Bidirectional):
    """The same of a recurrent model that goes on, in both directions, from the state after the batch before
    (ELMo).
    """

    def __call__(self, model: Any, batch: Batch, state: State | None) -> tuple[Terms, State]:
        if state is not None:
            state.check_batch(len(batch["input_ids"]))
        inputs: dict[str, Any] = model.tensors(batch)
        given: dict[str, Any] = {**inputs, "state": state}
        out = self.predict(model, given)
        return self.terms(out, batch, inputs), out.state

    def state(self, tensors: Mapping[str, Tensor]) -> nn.RecurrentState:
        return nn.RecurrentState(tensors["h"], tensors["c"])
