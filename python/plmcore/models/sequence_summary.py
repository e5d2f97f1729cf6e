"""One vector for a sequence, as the summary_* keys of a config say.  Shapes: B batch, T length, C width."""

from __future__ import annotations

from collections.abc import Sequence

from plmcore import nn
from plmcore._core import Dim, Tensor, ops
from plmcore.models.config import ACTIVATIONS
from plmcore.models.padding import EVERYWHERE, FIRST, Encoded, Packed, Reads
from plmcore.models.relative import count, whole


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

    def reads(self, shape: Sequence[int | Dim]) -> Reads:
        if self.kind in ("first", "mean"):
            return (FIRST if self.kind == "first" else EVERYWHERE,)
        B, T = shape
        last = ops.equal(ops.add(ops.arange(0, T), whole(1)), count(T))
        return (ops.broadcast_to(ops.reshape(ops.where(last, whole(0), whole(-100)), (1, T)), (B, T)),)

    def __call__(self, encoded: Encoded) -> Tensor:
        at, x = encoded.layout, encoded.rows
        if self.kind == "mean":
            x = ops.mean(x, 1)
        elif self.kind == "first":
            x = encoded.first()
        elif isinstance(at, Packed):
            x = ops.index_select(x, ops.sub(ops.slice(at.starts, 0, 1, at.B + 1), whole(1)))
        else:
            x = ops.reshape(ops.slice(x, 1, at.T - 1, at.T), (at.B, x.shape[-1]))
        return self.dropout(self.dense(x))
