"""Multi-head attention layers. Shapes: B batch, T query length, S source length, C width, H heads,
D head width, C // H unless given.

`weights` is a list to which a call appends its attention weights [B, H, T, S]. out_init draws the last
weight, q_init that of CrossAttention's queries, weight_init all unless they are given.
"""

from __future__ import annotations

from typing import Any, cast

from plmcore._core import ArgumentError, Tensor, ops
from plmcore.nn.dropout import Dropout
from plmcore.nn.init import Init
from plmcore.nn.linear import TORCH_DEFAULT, Linear
from plmcore.nn.module import Module


def head_width(name: str, width: int, heads: int) -> int:
    if heads < 1 or width % heads:
        raise ArgumentError(f"{name}: the width {width} must be a multiple of the number of heads {heads}")
    return width // heads


def attend(collected: list[Tensor] | None, *inputs: Tensor, **options: Any) -> Tensor:
    """ops.attention; its weights are appended to `collected` unless that is None."""
    attention: Any = ops.attention
    if collected is None:
        y: Tensor = attention(*inputs, **options)
        return y
    y, weights = attention(*inputs, **options, weights=True)
    collected.append(weights)
    return y


class SelfAttention(Module):
    """Self-attention; causal=True hides later positions.  x [B, T, C] -> [B, T, C]

    dropout falls on the attention weights, out_dropout (the same unless given) on the result. With `offsets`
    x holds the rows of B sequences one after the other, [N, C].
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        causal: bool = False,
        dropout: float = 0.0,
        out_dropout: float | None = None,
        bias: bool = True,
        scale: float | None = None,
        band: int = 0,
        stride: int = 0,
        depth: int | None = None,
        weight_init: Init = TORCH_DEFAULT,
        out_init: Init | None = None,
    ):
        self.heads, self.depth = heads, depth or head_width("SelfAttention", width, heads)
        self.causal, self.scale, self.band, self.stride = causal, scale, band, stride
        self.qkv = Linear(width, 3 * heads * self.depth, bias, weight_init=weight_init)
        self.out = Linear(heads * self.depth, width, bias, weight_init=out_init or weight_init)
        self.dropout = dropout
        self.out_dropout = Dropout(dropout if out_dropout is None else out_dropout)

    def __call__(
        self,
        x: Tensor,
        *,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        offsets: Tensor | None = None,
        prefix: Tensor | None = None,
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """x [B, T, C] attends to itself -> [B, T, C]."""
        qkv = ops.reshape(self.qkv(x), (*x.shape[:-1], 3, self.heads, self.depth))  # [B, T, 3, H, D]
        y = attend(
            weights,
            qkv,
            causal=self.causal,
            band=self.band,
            stride=self.stride,
            scale=self.scale,
            dropout=self.dropout if self.training else 0.0,
            lengths=lengths,
            mask=mask,
            bias=bias,
            offsets=offsets,
            prefix=prefix,
        )
        # [B, T, C]
        return self.out_dropout(self.out(ops.reshape(y, (*x.shape[:-1], self.heads * self.depth))))

    def describe(self) -> str:
        return f"heads={self.heads}" + (", causal" if self.causal else "")


class CrossAttention(Module):
    """Attention from x to a source.  x [B, T, C], source [B, S, source_width] -> [B, T, C]"""

    def __init__(
        self,
        width: int,
        heads: int,
        source_width: int | None = None,
        *,
        dropout: float = 0.0,
        out_dropout: float | None = None,
        bias: bool = True,
        scale: float | None = None,
        depth: int | None = None,
        weight_init: Init = TORCH_DEFAULT,
        q_init: Init | None = None,
        out_init: Init | None = None,
    ):
        self.heads, self.depth = heads, depth or head_width("CrossAttention", width, heads)
        self.scale = scale
        inner = heads * self.depth
        self.q = Linear(width, inner, bias, weight_init=q_init or weight_init)
        self.kv = Linear(
            width if source_width is None else source_width, 2 * inner, bias, weight_init=weight_init
        )
        self.out = Linear(inner, width, bias, weight_init=out_init or weight_init)
        self.dropout = dropout
        self.out_dropout = Dropout(dropout if out_dropout is None else out_dropout)

    def project(self, source: Tensor) -> Tensor:
        """Keys and values of a source, [B, S, 2, H, D]: decoding makes them once and passes them as `kv`."""
        return ops.reshape(self.kv(source), (*source.shape[:-1], 2, self.heads, self.depth))

    def __call__(
        self,
        x: Tensor,
        source: Tensor | None = None,
        *,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        kv: Tensor | None = None,
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """x [B, T, C] attends to the source -> [B, T, C]."""
        q = ops.reshape(self.q(x), (*x.shape[:-1], self.heads, self.depth))  # [B, T, H, D]
        if kv is None:
            kv = self.project(cast(Tensor, source))
        y = attend(
            weights,
            q,
            kv,
            scale=self.scale,
            dropout=self.dropout if self.training else 0.0,
            lengths=lengths,
            mask=mask,
            bias=bias,
        )
        # [B, T, C]
        return self.out_dropout(self.out(ops.reshape(y, (*x.shape[:-1], self.heads * self.depth))))

    def describe(self) -> str:
        return f"heads={self.heads}"
