from __future__ import annotations

from plmcore._core import Tensor, ops
from plmcore.nn import init
from plmcore.nn.module import Module
from plmcore.nn.parameter import Parameter


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * gamma + beta over the last axis,
    of x or of x + residual in one pass.  x [..., C]
    """

    def __init__(self, width: int, eps: float = 1e-5):
        self.gamma = Parameter.new(init.ones, (width,))
        self.beta = Parameter.new(init.zeros, (width,))
        self.eps = eps

    def __call__(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """x, or x + residual, normalised over the last axis."""
        if residual is None:
            return ops.layer_norm(x, self.gamma, self.beta, self.eps)
        return self.with_sum(x, residual)[0]

    def with_sum(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        """The norm of x + residual, and x + residual, which a pre-norm block carries on."""
        y, s = ops.residual_layer_norm(x, residual, self.gamma, self.beta, self.eps)
        return y, s

    def describe(self) -> str:
        return f"{super().describe()}, eps={self.eps}"


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + eps) * gamma over the last axis.  x [..., C]"""

    def __init__(self, width: int, eps: float = 1e-6, *, gamma_init: init.Init = init.ones):
        self.gamma = Parameter.new(gamma_init, (width,))
        self.eps = eps

    def __call__(self, x: Tensor) -> Tensor:
        """x divided by its root mean square over the last axis, times gamma."""
        return ops.rms_norm(x, self.gamma, self.eps)

    def describe(self) -> str:
        return f"{super().describe()}, eps={self.eps}"
