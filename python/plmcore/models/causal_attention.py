"""Causal attention over a padded batch, with or without a cache.

Shapes: B batch, T length, H heads, D head width. Rows as in plmcore.models.padding.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models import padding
from plmcore.models.cache import KeyValues, Step, in_reach
from plmcore.models.padding import Layout, Padded

# scores vanish beside these
LOWEST = {"float64": -8e307, "float32": -1.6e38, "bfloat16": -1.6e38, "float16": -3e4}


class AdditiveMask(Padded):
    """Padding runs too, and what a position may not see is pushed down, not left out:
    where all is, it looks at all alike.

    So published models treat a position that has nothing but padding before it. That matters where a head
    reads one: the first token of a text padded on the left is predicted from the padding before it.
    """

    def __init__(self, mask: Tensor, weights: bool, future: float | None):
        super().__init__(mask, weights)
        self.future = future

    def lower(self, scores: Tensor, band: int, stride: int) -> Tensor:
        """By LOWEST where a key is padding or out of reach; with `future` one out of reach has that as its
        score.  [B, H, T, T]
        """
        B, T, dtype = self.B, self.T, scores.dtype
        zero, low = (ops.full((), x, dtype, like=scores) for x in (0.0, LOWEST[dtype]))
        hidden = ops.reshape(self.hidden, (B, 1, 1, T))
        reach = ops.reshape(reaches(T, band, stride, scores), (1, 1, T, T))
        if self.future is None:
            hidden = ops.logical_or(hidden, ops.logical_not(reach))  # [B, 1, T, T]
        else:
            scores = ops.where(reach, scores, ops.full((), self.future, dtype, like=scores))
        return ops.add(scores, ops.where(hidden, low, zero))


def reaches(T: Any, band: int, stride: int, like: Tensor) -> Tensor:
    """Whether query i may see key j: up to itself, of these the last `band` and each `stride`-th back.  bool
    [T, T]
    """
    place = ops.arange(0, T, like=like)
    back = ops.sub(ops.reshape(place, (T, 1)), ops.reshape(place, (1, T)))
    seen = back >= 0
    return ops.logical_and(seen, in_reach(back, band, stride)) if band or stride else seen


def layout(
    ids: Tensor,
    attention_mask: Tensor | None,
    reads: padding.Reads = (),
    weights: bool = False,
    *,
    cache: KeyValues | None = None,
    sparse: bool = False,
    future: float | None = None,
    gapless: bool = False,
) -> Layout:
    """As padding.layout, for causal attention. `cache`: as in models.cache; a new one is filled.

    `sparse`: layers count distances, so that holes in a text must stay.
    """
    if cache is not None and cache.slots:
        return Step(cache, ids)
    found = _prompt_layout(ids, attention_mask, reads, weights, sparse, future, gapless)
    found.cache = cache
    return found


def _prompt_layout(
    ids: Any, attention_mask: Any, reads: Any, weights: Any, sparse: Any, future: Any, gapless: Any
) -> Layout:
    if attention_mask is not None:
        padding.check_shape("attention_mask", attention_mask, ids.shape)
        seen = padding.values(attention_mask)
        if any(_reads_blind(what, seen, sparse) for what in reads if what is not None):
            return AdditiveMask(ops.cast(attention_mask, "bool"), weights, future)
        if sparse and (seen is None or _has_holes(seen)):
            return Padded(ops.cast(attention_mask, "bool"), weights)
    return padding.layout(ids, attention_mask, reads, weights, gapless)


def _reads_blind(what: str | Tensor, seen: np.ndarray | None, sparse: bool) -> bool:
    """Whether a head may read a position that sees only padding (with `sparse`: one that is padding)."""
    if seen is None:
        return True
    blind = seen == 0 if sparse else np.cumsum(seen != 0, 1) == 0
    read = np.ones_like(blind) if isinstance(what, str) else padding.values(what) != -100
    return bool((blind & read).any())


def _has_holes(seen: np.ndarray) -> bool:
    before = np.pad(seen != 0, ((0, 0), (1, 0)))[:, :-1]
    return bool((((seen != 0) & ~before).sum(1) > 1).any())


def self_attend(attn: nn.SelfAttention, x: Tensor, layout: Layout, bias: Tensor | None = None) -> Tensor:
    """A decoder's attention to itself, with whatever its layout keeps and hides.  rows -> rows"""
    if layout.cache is None and not isinstance(layout, AdditiveMask):
        return attn(x, bias=bias, **layout.attention)
    qkv = attn.qkv(x)
    y = (
        _additively_masked(attn, qkv, layout, bias)
        if isinstance(layout, AdditiveMask)
        else cast(Any, layout.cache).attend(attn, qkv, layout, bias)
    )
    return attn.out_dropout(attn.out(y))


def _additively_masked(
    attn: nn.SelfAttention, qkv: Tensor, layout: AdditiveMask, bias: Tensor | None
) -> Tensor:
    """Step by step: ops.attention keeps the log-sum of each row, which does not tell T scores as low as
    LOWEST from one, and its gradient would be wrong there.  [B, T, 3 H D] -> [B, T, H D]
    """
    B, T, H, D = *qkv.shape[:2], attn.heads, attn.depth
    q, k, v = (
        ops.transpose(ops.reshape(x, (B, T, H, D)), (0, 2, 1, 3)) for x in ops.split(qkv, (H * D,) * 3, 2)
    )
    scores = ops.affine(ops.matmul(q, k, transpose_b=True), D**-0.5 if attn.scale is None else attn.scale)
    scores = scores if bias is None else ops.add(scores, bias)
    weights = ops.softmax(layout.lower(scores, attn.band, attn.stride))  # [B, H, T, T]
    if attn.training and attn.dropout:
        weights = ops.dropout(weights, attn.dropout)
    if layout.collected is not None:
        layout.collected.append(weights)
    return ops.reshape(ops.transpose(ops.matmul(weights, v), (0, 2, 1, 3)), (B, T, H * D))
