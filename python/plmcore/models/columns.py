"""The sequences of a batch from column 0 on, whatever padding a mask has: what recurrences, convolutions and
windows read.

Shapes: B batch, T length, N rows, C width.
"""

from __future__ import annotations

from plmcore._core import Dim, Tensor, ops
from plmcore.models.padding import Layout, Packed
from plmcore.models.relative import count


class Columns:
    """Of a layout. lengths [B], None where all have T rows. reverse: the last row of each comes first."""

    def __init__(self, layout: Layout, reverse: bool = False):
        self.layout, self.reverse, self.B, self.T = layout, reverse, layout.B, layout.T
        self.lengths: Tensor | None = None
        self.places: Tensor | None = None  # [N], where each row goes
        self.turned: Tensor | None = None  # [N], the row that stands there when sequences are turned round
        if isinstance(layout, Packed):
            self.lengths, self.places = layout.lengths, layout.places()
            if reverse:
                firsts = ops.narrow(layout.starts, 0, self.B)
                both = ops.add(ops.add(firsts, firsts), ops.affine(self.lengths, 1, -1))  # first + last
                rows = ops.arange(0, layout.index.shape[0], like=both)
                self.turned = ops.sub(layout.pack(spread(both, self.T)), rows)

    def of(self, rows: Tensor) -> Tensor:
        """rows -> [B, T, ...], 0 behind the ends"""
        if self.places is None:
            return ops.slice(rows, 1, 0, self.T, -1) if self.reverse else rows
        rows = rows if self.turned is None else ops.index_select(rows, self.turned)
        return ops.unpack_rows(rows, self.places, self.B, self.T)

    def rows(self, columns: Tensor) -> Tensor:
        """The way back."""
        if self.places is None:
            return ops.slice(columns, 1, 0, self.T, -1) if self.reverse else columns
        rows = ops.index_select(ops.reshape(columns, (self.B * self.T, *columns.shape[2:])), self.places)
        return rows if self.turned is None else ops.index_select(rows, self.turned)

    def last(self, columns: Tensor) -> Tensor:
        """What stands at the last step of each sequence; of an empty one its first, which is padding.
        [B, T, C] -> [B, C]
        """
        B, T, C = self.B, self.T, columns.shape[-1]
        if self.lengths is None:
            return ops.reshape(ops.slice(columns, 1, T - 1, T), (B, C))
        firsts = ops.mul(ops.arange(0, B, like=columns), count(T, columns))
        end = ops.maximum(ops.affine(self.lengths, 1, -1), ops.full((), 0, "int64", like=columns))
        return ops.index_select(ops.reshape(columns, (B * T, C)), ops.add(firsts, end))

    def of_lengths(self) -> Tensor:
        """lengths [B] in any case"""
        if self.lengths is not None:
            return self.lengths
        return ops.broadcast_to(ops.reshape(count(self.T, self.layout.ids), (1,)), (self.B,))

    def positions(self) -> Tensor:
        """0 ... T - 1  [1, T]"""
        return ops.reshape(ops.arange(0, self.T, like=self.layout.ids), (1, self.T))


def spread(x: Tensor, T: int | Dim) -> Tensor:
    """[B] -> [B, T]"""
    return ops.broadcast_to(ops.reshape(x, (x.shape[0], 1)), (x.shape[0], T))
