from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plmcore._core import ArgumentError, Tensor, ops
from plmcore.criteria.criterion import Batch, Terms
from plmcore.criteria.tokens import Tokens
from plmcore.models.outputs import Output
from plmcore.models.relative import Memories
from plmcore.nn.state import State


class Remembered(Tokens):
    """Tokens of a model that is given the memory of earlier batches: each row goes on where that of the batch
    before ended (XLNet).

    Of each batch the states of its first `reuse` tokens are remembered, as the next one begins behind those;
    of all that is remembered the last `length` tokens. Gradients end there.
    """

    def __init__(self, kind: str, label_smoothing: float = 0.0, *, length: int, reuse: int):
        if length < 1 or reuse < 1:
            raise ArgumentError(f"a memory needs at least one token, got length {length} and reuse {reuse}")
        super().__init__(kind, label_smoothing)
        self.length, self.reuse = length, reuse

    def __call__(self, model: Any, batch: Batch, state: State | None) -> tuple[Terms, State]:
        if state is not None:
            state.check_batch(len(batch["input_ids"]))
        inputs: dict[str, Any] = model.tensors(batch)
        before = state.layers if isinstance(state, Memories) else None
        out = self.predict(model, inputs | {"mems": before, "use_mems": True})
        return self.terms(out, batch, inputs), self.kept(out, before, batch["input_ids"].shape[1])

    def kept(self, out: Output, before: tuple[Tensor, ...] | None, T: int) -> Memories:
        """Of the memory before and a batch of T tokens."""
        P = 0 if before is None else int(before[0].shape[0])
        if out.mems[0].shape[0] != P + T:
            raise ArgumentError(
                f"training with a memory: the model must keep all {P + T} tokens for the criterion to choose "
                f"from, got {out.mems[0].shape[0]}; set model.mem_len and model.reuse_len to 0"
            )
        end = P + self.reuse
        begin = max(0, end - self.length)
        return Memories(tuple(ops.copy(ops.narrow(m, begin, end - begin)) for m in out.mems))

    def state(self, tensors: Mapping[str, Tensor]) -> Memories:
        return Memories(tuple(tensors[str(i)] for i in range(len(tensors))))
