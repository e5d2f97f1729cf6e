"""Attention of plmcore.models.transfo_xl: a segment looks at itself and at the memory before it.

Shapes: B batch, T length, P memory, S = P + T, C width, H heads, D head width.
"""

from __future__ import annotations

from dataclasses import dataclass

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models import relative
from plmcore.models.padding import Layout
from plmcore.nn.attention import attend


@dataclass
class View:
    """What attention must know, once for all layers."""

    layout: Layout
    distances: Tensor  # as sinusoids, [S, C]
    mask: Tensor | None  # of the keys, bool [B, 1, 1, S]
    band: int


class SegmentAttention(nn.Module):
    """u, v: parameters of another layer, to be shared with it."""

    UNDECAYED = ("u", "v")  # by weight decay: one vector per head

    def __init__(
        self,
        width: int,
        heads: int,
        depth: int,
        u: nn.Parameter | None = None,
        v: nn.Parameter | None = None,
        *,
        dropatt: float = 0.0,
        dropout: float = 0.0,
        weight_init: nn.init.Init,
    ):
        C, H, D, init = width, heads, depth, weight_init
        self.heads, self.depth, self.scale, self.width = H, D, D**-0.5, H * D
        self.qkv = nn.Linear(C, 3 * H * D, bias=False, weight_init=init)
        self.r = nn.Linear(C, H * D, bias=False, weight_init=init)
        self.out = nn.Linear(H * D, C, bias=False, weight_init=init)
        self.u = nn.Parameter.new(init, (H, D)) if u is None else u
        self.v = nn.Parameter.new(init, (H, D)) if v is None else v
        self.dropatt, self.dropout = dropatt, nn.Dropout(dropout)

    def keys(self, memory: Tensor) -> Tensor:
        """Keys and values.  [B, P, C] -> [B, P, 2 H D]"""
        return self.qkv.part(memory, self.width, 2 * self.width)

    def __call__(self, x: Tensor, past: Tensor | None, view: View) -> tuple[Tensor, Tensor]:
        """x [B, T, C], past keys [B, P, 2 H D] -> [B, T, C], keys [B, S, 2 H D]"""
        q, kv = ops.split(self.qkv(x), (self.width, 2 * self.width), 2)
        kv = kv if past is None else ops.concat([past, kv], 1)
        (B, T), S, H, D = x.shape[:2], kv.shape[1], self.heads, self.depth
        q = ops.reshape(q, (B, T, H, D))
        r = ops.reshape(ops.affine(self.r(view.distances), self.scale, 0.0), (1, S, H, D))
        y = attend(
            view.layout.collected,
            ops.add(q, self.u),
            ops.reshape(kv, (B, S, 2, H, D)),
            bias=relative.by_distance(q, self.v, ops.transpose(r, (0, 2, 1, 3)), S),
            mask=view.mask,
            causal=True,
            band=view.band,
            scale=self.scale,
            dropout=self.dropatt if self.training else 0.0,
        )
        return self.dropout(self.out(ops.reshape(y, (B, T, self.width)))), kv
