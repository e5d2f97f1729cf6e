from __future__ import annotations

import math

from plmcore._core import ArgumentError, Tensor, ops
from plmcore.nn import init
from plmcore.nn.activations import check_activation
from plmcore.nn.module import Module
from plmcore.nn.parameter import Parameter

TORCH_DEFAULT = init.kaiming_uniform(1 / math.sqrt(3))  # within 1 / sqrt(in)


class Linear(Module):
    """activation(x W^T + b), the activation inside the product's epilogue.  x [..., in] -> [..., out]; weight
    [out, in]; bias [out]

    weight: a parameter of another layer, to be shared with it.
    """

    def __init__(
        self,
        in_width: int,
        out_width: int,
        bias: bool = True,
        *,
        activation: str = "none",
        weight: Parameter | None = None,
        weight_init: init.Init = TORCH_DEFAULT,
        bias_init: init.Init = init.zeros,
    ):
        if weight is not None and tuple(weight.shape) != (out_width, in_width):
            raise ArgumentError(
                f"Linear: the shared weight must be {[out_width, in_width]}, got {list(weight.shape)}"
            )
        check_activation("Linear", activation)
        self.weight = Parameter.new(weight_init, (out_width, in_width)) if weight is None else weight
        self.bias = Parameter.new(bias_init, (out_width,)) if bias else None
        self.activation = activation

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """bias: one of the caller's, for a layer that has none."""
        return ops.linear(x, self.weight, self.bias if bias is None else bias, self.activation)

    def part(self, x: Tensor, begin: int, size: int) -> Tensor:
        """`size` of the columns of x W^T from `begin` on, of a layer without bias and activation."""
        return ops.linear(x, ops.narrow(self.weight, begin, size))

    def describe(self) -> str:
        return super().describe() + (f", {self.activation}" if self.activation != "none" else "")
