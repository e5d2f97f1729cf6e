from __future__ import annotations

from collections.abc import Sequence

from plmcore._core import ArgumentError, Tensor, ops
from plmcore.nn import init
from plmcore.nn.module import Module
from plmcore.nn.parameter import Parameter

EPS = 1e-12


class ScalarMix(Module):
    """gamma sum_l softmax(scalars)_l h_l over layers (ELMo).  [B, T, C] each -> [B, T, C]

    layer_norm: each h_l first loses the mean and is divided by the deviation of all its numbers, those where
    the mask is 0 aside: one mean and one variance for a tensor.
    """

    def __init__(self, layers: int, layer_norm: bool = False):
        if layers < 1:
            raise ArgumentError(f"ScalarMix: there must be at least one layer, got {layers}")
        self.scalars = Parameter.new(init.zeros, (layers,))
        self.gamma = Parameter.new(init.ones, (1,))
        self.layer_norm = layer_norm

    def __call__(self, states: Sequence[Tensor], mask: Tensor | None = None) -> Tensor:
        """mask [B, T]: 0 for positions that do not count; for layer_norm."""
        if len(states) != self.scalars.shape[0]:
            raise ArgumentError(f"ScalarMix: {self.scalars.shape[0]} layers are mixed, got {len(states)}")
        if self.layer_norm:
            states = [normalised(h, mask) for h in states]
        shares = ops.split(ops.softmax(self.scalars), [1] * len(states), 0)
        total = ops.mul(states[0], shares[0])
        for h, share in zip(states[1:], shares[1:], strict=True):
            total = ops.add(total, ops.mul(h, share))
        return ops.mul(total, self.gamma)

    def penalty(self) -> Tensor:
        """sum_l scalars_l^2, which a weight pulls towards the mean of the layers."""
        return ops.sum(ops.mul(self.scalars, self.scalars))

    def describe(self) -> str:
        return f"{self.scalars.shape[0]}" + (", layer_norm" if self.layer_norm else "")


def normalised(h: Tensor, mask: Tensor | None) -> Tensor:
    """(h - mean) / sqrt(variance + eps) over the whole tensor, where the mask is not 0."""
    if mask is None:
        centred = ops.sub(h, ops.mean(h))
        variance = ops.mean(ops.mul(centred, centred))
    else:
        seen = ops.reshape(ops.cast(mask, h.dtype), (*mask.shape, 1))
        count = ops.affine(ops.sum(seen), float(h.shape[-1]), 0.0)
        centred = ops.sub(h, ops.div(ops.sum(ops.mul(h, seen)), count))
        variance = ops.div(ops.sum(ops.mul(ops.mul(centred, centred), seen)), count)
    return ops.div(centred, ops.sqrt(ops.affine(variance, 1.0, EPS)))
