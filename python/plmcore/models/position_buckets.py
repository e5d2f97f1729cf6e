"""Relative positions as biases of attention, one for each bucket of distances (T5).
Shapes: H heads, T queries, S keys.
"""

from __future__ import annotations

import math

from plmcore import nn
from plmcore._core import Dim, Tensor, ops
from plmcore.models.cache import Step


def buckets(distance: Tensor, n: int, most: int, both_ways: bool) -> Tensor:
    """The bucket, 0 to n - 1, of a key's position minus the query's (float32): near ones have one each,
    farther ones share more and more widely up to `most`, beyond which all are in the last. both_ways: half of
    the buckets are for keys that come later.
    """
    if both_ways:
        n //= 2
        later = ops.affine(ops.cast(distance > 0, "float32"), n, 0)
        distance = ops.abs(distance)
    else:
        later = ops.full((), 0, "float32", like=distance)
        distance = ops.relu(ops.affine(distance, -1, 0))
    exact, last = (ops.full((), k, "float32", like=distance) for k in (n // 2, n - 1))
    far = ops.log(ops.div(ops.maximum(distance, exact), exact))
    far = ops.div(far, ops.full((), math.log(most / (n // 2)), "float32", like=distance))
    # step by step as published: rounding decides at the edges
    far = ops.cast(ops.affine(far, n - n // 2, 0), "int64")
    far = ops.minimum(ops.add(ops.cast(far, "float32"), exact), last)
    return ops.cast(ops.add(later, ops.where(ops.less(distance, exact), distance, far)), "int64")


class PositionBias(nn.Module):
    """A number for each head and bucket of distances,
    added to the scores of all layers of a stack.  -> [1, H, T, S]
    """

    def __init__(self, n: int, most: int, heads: int, causal: bool, weight_init: nn.init.Init):
        self.n, self.most, self.causal = n, most, causal
        self.table = nn.Embedding(n, heads, weight_init=weight_init)

    def __call__(self, T: int | Dim, S: int | Dim) -> Tensor:
        """The last query is at the last key."""
        table = self.table.weight
        H, L = table.shape[1], T + S - 1
        last = ops.sum(ops.full((S - 1,), 1, "float32", like=table))
        distance = ops.sub(ops.arange(0, L, "float32", like=table), last)  # [L]: from 1 - S to T - 1
        bias = self.table(buckets(distance, self.n, self.most, not self.causal))  # [L, H]
        bias = ops.reshape(ops.transpose(bias, (1, 0)), (1, H, 1, L))
        return ops.rel_shift(ops.broadcast_to(bias, (1, H, T, L)), S)

    def step(self, layout: Step) -> Tensor:
        """For one token of each sequence over the slots of a cache.  [1|B, H, n, room]"""
        back = ops.affine(ops.cast(layout.cache.distances(), "float32"), -1, 0)
        bias = ops.transpose(self.table(buckets(back, self.n, self.most, False)), (0, 2, 1))  # [1|B, H, room]
        B, H, room = bias.shape
        return ops.broadcast_to(ops.reshape(bias, (B, H, 1, room)), (B, H, layout.T, room))
