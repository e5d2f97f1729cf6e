from __future__ import annotations

import math

from plmcore._core import ArgumentError, ShapeError, Tensor, TraceError, assign, ops
from plmcore.nn import init
from plmcore.nn.module import Module
from plmcore.nn.parameter import Buffer, Parameter


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


class BatchNorm(Module):
    """(x - mean) / sqrt(var + eps) * gamma + beta of each feature over all other axes.  x [..., C]

    In training mode mean and variance (of all, not n - 1) are those of x, and running_mean and running_var go
    `momentum` of the way to them (there the variance of n - 1). In eval mode they are the running ones.
    """

    def __init__(self, width: int, eps: float = 1e-5, momentum: float = 0.1):
        if not 0 <= momentum <= 1:
            raise ArgumentError(f"BatchNorm: momentum must be in [0, 1], got {momentum}")
        self.gamma = Parameter.new(init.ones, (width,))
        self.beta = Parameter.new(init.zeros, (width,))
        self.running_mean = Buffer.new(init.zeros, (width,))
        self.running_var = Buffer.new(init.ones, (width,))
        self.eps, self.momentum = eps, momentum

    def __call__(self, x: Tensor) -> Tensor:
        """x normalised feature by feature; in training mode the running statistics change."""
        C = self.gamma.shape[0]
        if x.ndim < 2 or x.shape[-1] != C:
            raise ShapeError(f"BatchNorm: x must be [..., {C}], got {list(x.shape)}")
        if not self.training:
            return self.scaled(ops.sub(x, self.running_mean), self.running_var)
        n = self.rows(x)
        axes = list(range(x.ndim - 1))
        mean = ops.mean(x, axes)  # [C]
        centred = ops.sub(x, mean)
        var = ops.mean(ops.mul(centred, centred), axes)
        self.follow(self.running_mean, mean)
        self.follow(self.running_var, ops.affine(var, n / (n - 1), 0.0))
        return self.scaled(centred, var)

    def scaled(self, centred: Tensor, var: Tensor) -> Tensor:
        """centred / sqrt(var + eps) gamma + beta"""
        scale = ops.mul(ops.rsqrt(ops.affine(var, 1.0, self.eps)), self.gamma)
        return ops.add(ops.mul(centred, scale), self.beta)

    @staticmethod
    def rows(x: Tensor) -> int:
        """How many values of each feature there are: at least two, or they have no variance."""
        sizes = [size for size in x.shape[:-1] if isinstance(size, int)]
        if len(sizes) < x.ndim - 1:
            raise TraceError("BatchNorm: training changes the running statistics; trace in eval mode")
        n = math.prod(sizes)
        if n < 2:
            raise ArgumentError(
                f"BatchNorm: training needs two values or more of each feature, got {list(x.shape)}; use "
                f"larger batches, or eval mode"
            )
        return n

    def follow(self, running: Buffer, now: Tensor) -> None:
        """A step towards the statistics of a batch; what is not finite is left out, as a skipped step is."""
        old = running.detach()
        new = ops.add(ops.affine(old, 1 - self.momentum, 0.0), ops.affine(now.detach(), self.momentum, 0.0))
        finite = ops.equal(ops.sub(new, new), ops.full((), 0.0, new.dtype, like=new))
        assign(running, ops.where(finite, new, old))

    def describe(self) -> str:
        return f"{super().describe()}, eps={self.eps}, momentum={self.momentum}"
