"""Attention of the two streams of plmcore.models.xlnet, and what it must know: who sees whom, and how far
away that is, made once for all layers.

Shapes: B batch, T length, P memory, S = P + T, M targets, L distances, C width, H heads, D = C // H.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from plmcore import nn
from plmcore._core import Dim, ShapeError, Tensor, ops
from plmcore.models import relative
from plmcore.models.config import Config
from plmcore.models.padding import Layout, Packed, Padded
from plmcore.models.relative import count
from plmcore.nn.attention import attend


@dataclass
class View:
    layout: Layout
    distances: Tensor  # as sinusoids, [1, L, C], or [2, L, C]: forwards and backwards
    direction: Tensor | None  # which of the two, int64 [B]
    differs: Tensor | None  # other segment, bool [B, 1, T, S]
    content_mask: Tensor | None  # bool [B|1, 1, T|1, S], true may be seen; None: all
    query_mask: Tensor | None
    targets: Tensor | None  # [B, M, T]

    def spread(self, rows: Tensor) -> Tensor:
        """rows -> [B, T, ...], with something in the places of dropped rows"""
        at = self.layout
        return ops.unpack_rows(rows, at.index, at.B, at.T) if isinstance(at, Packed) else rows


def view(
    cfg: Config, layout: Layout, P: int | Dim, dtype: str, *,
    attention_mask: Tensor | None, perm_mask: Tensor | None, targets: Tensor | None, types: Tensor | None,
) -> View:  # fmt: skip
    B, T = layout.B, layout.T
    if cfg.bi_data and isinstance(B, int) and B % 2:
        raise ShapeError(
            f"input_ids: with bi_data half of a batch runs backwards, so that it must be even, got {B}"
        )
    if perm_mask is not None:
        relative.check_shape("perm_mask", perm_mask, (B, T, T), "[batch, length, length]")
    if targets is not None:
        M = targets.shape[1] if targets.ndim == 3 else "M"
        relative.check_shape("target_mapping", targets, (B, M, T), "[batch, targets, length]")
        targets = ops.cast(targets, dtype)
    content_mask, query_mask = _masks(cfg, layout, attention_mask, perm_mask, P)
    return View(
        layout, *_distances(cfg, layout, P + T, dtype), _differs(types, P), content_mask, query_mask, targets
    )


def _masks(
    cfg: Config, layout: Layout, attention_mask: Tensor | None, perm_mask: Tensor | None, P: int | Dim
) -> tuple[Tensor | None, Tensor | None]:
    """Whom the content and the query stream may see; attn_type uni also hides what comes later, in
    ops.attention.
    """
    B, T, S = layout.B, layout.T, P + layout.T
    seen = []
    if isinstance(layout, (Padded, Packed)) and attention_mask is not None:
        seen.append(ops.reshape(ops.cast(attention_mask, "bool"), (B, 1, 1, T)))
    if perm_mask is not None:
        seen.append(ops.reshape(ops.logical_not(ops.cast(perm_mask, "bool")), (B, 1, T, T)))
    seen = [ops.pad(m, [0, 0, 0, P], [0, 0, 0, 0], 1) for m in seen]  # all see the memory
    keys = ops.arange(0, S, like=layout.ids)
    if cfg.attn_type == "uni" and cfg.same_length:  # the memory moves on with the query
        later = ops.less_equal(ops.reshape(ops.arange(0, T, like=keys), (T, 1)), keys)
        seen.append(ops.reshape(later, (1, 1, T, S)))
    if not seen:
        return None, None
    query = reduce(ops.logical_and, seen)
    itself = ops.equal(ops.reshape(ops.arange(P, S, like=keys), (T, 1)), keys)
    return ops.logical_or(query, ops.reshape(itself, (1, 1, T, S))), query


def _distances(cfg: Config, layout: Layout, S: int | Dim, dtype: str) -> tuple[Tensor, Tensor | None]:
    """With bi_data the second half of the batch runs backwards."""
    B, ids = layout.B, layout.ids
    d = relative.distances(layout.T, S, cfg.attn_type == "bi", cfg.clamp_len, ids)
    d, direction = ops.reshape(d, (1, d.shape[0])), None
    if cfg.bi_data:
        d = ops.concat([d, -d], 0)
        direction = ops.cast(ops.greater_equal(ops.arange(0, B, like=ids) * 2, count(B, ids)), "int64")
    return relative.sinusoids(d, cfg.d_model, dtype), direction


def _differs(types: Tensor | None, P: int | Dim) -> Tensor | None:
    """Whether query and key are of different segments; that of the memory is 0.  [B, T]"""
    if types is None:
        return None
    B, T = types.shape
    keys = ops.pad(types, [0, P], [0, 0], 0)
    return ops.not_equal(ops.reshape(types, (B, 1, T, 1)), ops.reshape(keys, (B, 1, 1, P + T)))


class RelativeAttention(nn.Module):
    """Both streams look at keys and values of h and of the memory; what depends on distance and segment is
    the bias of ops.attention.
    """

    UNDECAYED = ("u", "v", "s")  # by weight decay: one vector per head

    def __init__(self, width: int, heads: int, *, causal: bool, dropout: float, weight_init: nn.init.Init):
        C, H, init = width, heads, weight_init
        self.heads, self.depth, self.scale = H, C // H, (C // H) ** -0.5
        self.causal = causal
        self.q = nn.Linear(C, C, bias=False, weight_init=init)
        self.kv = nn.Linear(C, 2 * C, bias=False, weight_init=init)
        self.r = nn.Linear(C, C, bias=False, weight_init=init)
        self.out = nn.Linear(C, C, bias=False, weight_init=init)
        self.u, self.v, self.s = (nn.Parameter.new(init, (H, C // H)) for _ in range(3))
        self.segments = nn.Parameter.new(init, (2, H, C // H))
        self.dropout = nn.Dropout(dropout)

    def __call__(
        self, h: Tensor, g: Tensor | None, memory: Tensor | None, view: View
    ) -> tuple[Tensor, Tensor | None]:
        """h rows, g [B, M, C], memory [B, P, C]"""
        kv = view.spread(self.kv(h))  # [B, T, 2 C]
        kv = kv if memory is None else ops.concat([self.kv(memory), kv], 1)  # [B, S, 2 C]
        kv = ops.reshape(kv, (*kv.shape[:2], 2, self.heads, self.depth))
        r = ops.affine(self.r(view.distances), self.scale, 0.0)
        # [1|2, H, L, D]
        r = ops.transpose(ops.reshape(r, (*r.shape[:2], self.heads, self.depth)), (0, 2, 1, 3))
        r = r if view.direction is None else ops.index_select(r, view.direction)  # [B, H, L, D]

        y = self.attend(view.spread(self.q(h)), kv, r, view, view.content_mask)
        h = self.dropout(self.out(view.layout.pack(y)))
        if g is not None and view.targets is not None:
            q = ops.matmul(view.targets, self.q(g), transpose_a=True)  # [B, T, C]
            y = self.attend(q, kv, r, view, view.query_mask)
            g = self.dropout(self.out(ops.matmul(view.targets, y)))  # [B, M, C]
        return h, g

    def attend(self, q: Tensor, kv: Tensor, r: Tensor, view: View, mask: Tensor | None) -> Tensor:
        """q [B, T, C] -> [B, T, C]"""
        B, T, C = q.shape
        q = ops.reshape(q, (B, T, self.heads, self.depth))
        bias = relative.by_distance(q, self.v, r, kv.shape[1])  # [B, H, T, S]
        if view.differs is not None:
            by_head = ops.add(
                ops.transpose(q, (0, 2, 1, 3)), ops.reshape(self.s, (self.heads, 1, self.depth))
            )
            e = ops.matmul(by_head, ops.transpose(self.segments, (1, 2, 0)))  # [B, H, T, 2]
            same, other = ops.split(ops.affine(e, self.scale, 0.0), (1, 1), 3)
            bias = ops.add(bias, ops.where(view.differs, other, same))
        y = attend(
            view.layout.collected,
            ops.add(q, self.u),
            kv,
            bias=bias,
            mask=mask,
            causal=self.causal,
            scale=self.scale,
            dropout=self.dropout.p if self.training else 0.0,
        )
        return ops.reshape(y, (B, T, C))
