from __future__ import annotations

from plmcore._core import ArgumentError, Tensor, ops
from plmcore.nn.module import Module


class Dropout(Module):
    """While training: each element is 0 with probability p, else x / (1 - p)."""

    locked = False

    def __init__(self, p: float = 0.1):
        if not 0 <= p < 1:
            raise ArgumentError(f"{type(self).__name__}: p must be in [0, 1), got {p}")
        self.p = p

    def __call__(self, x: Tensor) -> Tensor:
        """x with random elements set to 0 in training mode, the others scaled; x itself otherwise."""
        return ops.dropout(x, self.p, self.locked) if self.training and self.p else x

    def describe(self) -> str:
        return f"p={self.p}"


class LockedDropout(Dropout):
    """Dropout with one mask for all positions.  x [B, T, C]; mask [B, 1, C]"""

    locked = True
