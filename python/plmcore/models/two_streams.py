"""Who sees whom in XLNet, and how far away it is: made once for all layers and both streams of plmcore.models.xlnet.

Shapes: B batch, T length, P memory, S = P + T, M targets, L distances, C width.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from plmcore._core import ShapeError, Tensor, ops
from plmcore.models import relative
from plmcore.models.config import Config
from plmcore.models.padding import Masked, Packed, Whole
from plmcore.models.relative import count, whole


@dataclass
class View:
    layout: Whole
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
    cfg: Config, layout: Whole, P: int, dtype: str, *,
    attention_mask: Tensor | None, perm_mask: Tensor | None, targets: Tensor | None, types: Tensor | None,
) -> View:  # fmt: skip
    B, T = layout.B, layout.T
    if cfg.bi_data and isinstance(B, int) and B % 2:
        raise ShapeError(f"input_ids: with bi_data half of a batch runs backwards, so that it must be even, got {B}")
    if perm_mask is not None:
        relative.check_shape("perm_mask", perm_mask, (B, T, T), "[batch, length, length]")
    if targets is not None:
        M = targets.shape[1] if targets.ndim == 3 else "M"
        relative.check_shape("target_mapping", targets, (B, M, T), "[batch, targets, length]")
        targets = ops.cast(targets, dtype)
    content_mask, query_mask = _masks(cfg, layout, attention_mask, perm_mask, P)
    return View(layout, *_distances(cfg, B, T, P + T, dtype), _differs(types, P), content_mask, query_mask, targets)


def _masks(
    cfg: Config, layout: Whole, attention_mask: Tensor | None, perm_mask: Tensor | None, P: int
) -> tuple[Tensor | None, Tensor | None]:
    """Whom the content and the query stream may see; attn_type uni also hides what comes later, in ops.attention."""
    B, T, S = layout.B, layout.T, P + layout.T
    seen = []
    if isinstance(layout, (Masked, Packed)):
        seen.append(ops.reshape(ops.cast(attention_mask, "bool"), (B, 1, 1, T)))
    if perm_mask is not None:
        seen.append(ops.reshape(ops.logical_not(ops.cast(perm_mask, "bool")), (B, 1, T, T)))
    seen = [ops.pad(m, [0, 0, 0, P], [0, 0, 0, 0], 1) for m in seen]  # all see the memory
    keys = ops.arange(0, S)
    if cfg.attn_type == "uni" and cfg.same_length:  # the memory moves on with the query
        seen.append(ops.reshape(ops.less_equal(ops.reshape(ops.arange(0, T), (T, 1)), keys), (1, 1, T, S)))
    if not seen:
        return None, None
    query = reduce(ops.logical_and, seen)
    itself = ops.equal(ops.reshape(ops.arange(P, S), (T, 1)), keys)
    return ops.logical_or(query, ops.reshape(itself, (1, 1, T, S))), query


def _distances(cfg: Config, B: int, T: int, S: int, dtype: str) -> tuple[Tensor, Tensor | None]:
    """With bi_data the second half of the batch runs backwards."""
    d = relative.distances(T, S, cfg.attn_type == "bi", cfg.clamp_len)
    d, direction = ops.reshape(d, (1, d.shape[0])), None
    if cfg.bi_data:
        d = ops.concat([d, ops.mul(d, whole(-1))], 0)
        direction = ops.cast(ops.greater_equal(ops.mul(ops.arange(0, B), whole(2)), count(B)), "int64")
    return relative.sinusoids(d, cfg.d_model, dtype), direction


def _differs(types: Tensor | None, P: int) -> Tensor | None:
    """Whether query and key are of different segments; that of the memory is 0.  [B, T]"""
    if types is None:
        return None
    B, T = types.shape
    keys = ops.pad(types, [0, P], [0, 0], 0)
    return ops.not_equal(ops.reshape(types, (B, 1, T, 1)), ops.reshape(keys, (B, 1, 1, P + T)))
