from __future__ import annotations

from plmcore._core import ArgumentError, Tensor, ops
from plmcore.nn import init
from plmcore.nn.module import Module
from plmcore.nn.parameter import Parameter

SMALL = init.normal(0.02)


class Embedding(Module):
    """Rows of a table.  ids [...] -> [..., C]; weight [V, C]

    padding_idx: this row starts as zeros and gets no gradient.
    sparse: the gradient holds the rows that were used and no others.
    weight: a parameter of another layer, to be shared with it.
    """

    def __init__(
        self,
        size: int,
        width: int,
        padding_idx: int | None = None,
        *,
        sparse: bool = False,
        weight: Parameter | None = None,
        weight_init: init.Init = SMALL,
    ):
        if padding_idx is not None and not 0 <= padding_idx < size:
            raise ArgumentError(f"Embedding: padding_idx must be from 0 to {size - 1}, got {padding_idx}")
        if padding_idx is not None:
            weight_init = init.zero_row(weight_init, padding_idx)
        if weight is not None and tuple(weight.shape) != (size, width):
            raise ArgumentError(
                f"Embedding: the shared weight must be {[size, width]}, got {list(weight.shape)}"
            )
        self.weight = Parameter.new(weight_init, (size, width)) if weight is None else weight
        self.padding_idx = padding_idx
        self.sparse = sparse

    @property
    def dtype(self) -> str:
        """Of the rows that a call gives."""
        return self.weight.dtype

    def __call__(self, ids: Tensor) -> Tensor:
        """ids [...] -> rows of the table [..., C]."""
        y = ops.embedding(self.weight, ids, self.sparse)  # [..., C]
        if self.padding_idx is None or not y.requires_grad:
            return y
        padding = ids == self.padding_idx
        return ops.where(ops.reshape(padding, (*ids.shape, 1)), y.detach(), y)
