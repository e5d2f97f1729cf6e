"""One vector for a sequence, as the summary_* keys of a config say.  Shapes: B batch, T length, C width."""

from __future__ import annotations

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models.config import ACTIVATIONS
from plmcore.models.padding import EVERYWHERE, FIRST, Encoded, Packed, Reads
from plmcore.models.relative import count


class Summary(nn.Module):
    """One vector for a sequence: its last position (where <cls> is), the first, or the mean.  -> [B, C]"""

    def __init__(
        self, kind: str, width: int | None, activation: str | None, dropout: float, weight_init: nn.init.Init
    ):
        """width: of a projection, None for none."""
        self.kind = kind
        act = ACTIVATIONS[activation or "linear"]
        self.dense = (
            nn.Linear(width, width, activation=act, weight_init=weight_init) if width else nn.Activation(act)
        )
        self.dropout = nn.Dropout(dropout)

    def reads(self, ids: Tensor) -> Reads:
        if self.kind in ("first", "mean"):
            return (FIRST if self.kind == "first" else EVERYWHERE,)
        B, T = ids.shape
        last = ops.equal(ops.arange(0, T, like=ids) + 1, count(T, ids))
        labels = ops.where(last, *(ops.full((), n, "int64", like=ids) for n in (0, -100)))
        return (ops.broadcast_to(ops.reshape(labels, (1, T)), (B, T)),)

    def __call__(self, encoded: Encoded) -> Tensor:
        at, x = encoded.layout, encoded.rows
        if self.kind == "mean":
            x = ops.mean(x, 1)
        elif self.kind == "first":
            x = encoded.first()
        elif isinstance(at, Packed):
            x = ops.index_select(x, ops.slice(at.starts, 0, 1, at.B + 1) - 1)
        else:
            x = ops.reshape(ops.slice(x, 1, at.T - 1, at.T), (at.B, x.shape[-1]))
        return self.dropout(self.dense(x))
