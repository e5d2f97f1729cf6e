from __future__ import annotations

import math

from plmcore._core import ArgumentError, Tensor, ops
from plmcore.nn import init
from plmcore.nn.module import Module
from plmcore.nn.parameter import Parameter


class Conv1d(Module):
    """Windows of `width` positions: y_t = sum over w of W[:, :, w] x_{t + w - padding} + b; x is 0 outside.

    x [B, T, in] -> [B, T + 2 padding - width + 1, out]; weight [out, in, width]; bias [out]
    """

    def __init__(self, inputs: int, outputs: int, width: int, *, padding: int = 0, bias: bool = True):
        if not 0 <= padding < width:
            raise ArgumentError(f"Conv1d: padding must be in [0, {width}), the width, got {padding}")
        bound = 1 / math.sqrt(max(inputs * width, 1))
        draw = init.uniform(-bound, bound)
        self.weight = Parameter.new(draw, (outputs, inputs, width))
        self.bias = Parameter.new(draw, (outputs,)) if bias else None
        self.padding = padding

    def __call__(self, x: Tensor) -> Tensor:
        """x [B, T, in] -> [B, T + 2 padding - width + 1, out]"""
        return ops.conv1d(x, self.weight, self.bias, self.padding)
