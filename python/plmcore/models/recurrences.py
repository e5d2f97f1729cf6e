"""Recurrent layers one above the other: what they carry from call to call, and texts of several lengths.

Shapes: B batch, n sequences of each prompt, T length, C width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plmcore._core import ArgumentError, Dim, ShapeError, Tensor, ops
from plmcore.models.padding import Layout, Packed
from plmcore.models.relative import count
from plmcore.nn.state import State, chosen

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Carried(State):
    """(h, c) of LSTMs of any widths, a pair for each, as nn.LSTM has them: `for h, c in state`, [1, B, C].

    Kept as [B, n, C]: in a search each of B prompts has n sequences.
    """

    layers: tuple[Pair, ...]

    @classmethod
    def zeros(cls, widths: Sequence[int], like: Tensor) -> Carried:
        """Before the first token of texts.  like [B, ...]"""
        made = (ops.full((like.shape[0], 1, width), 0.0, like.dtype, like=like) for width in widths)
        return cls(tuple((zero, zero) for zero in made))

    @classmethod
    def of(cls, pairs: Sequence[Sequence[Tensor]], n: int | Dim = 1) -> Carried:
        """Of what layers have given.  [1, B n, C] each"""

        def apart(x: Tensor) -> Tensor:
            rows: Any = x.shape[1]
            return ops.reshape(x, (rows // n, n, x.shape[2]))

        return cls(tuple((apart(h), apart(c)) for h, c in pairs))

    @classmethod
    def given(cls, state: Any, widths: Sequence[int], B: int | Dim) -> Carried:
        """A caller's state, one of these or pairs for each layer, which must fit."""
        pairs = state if isinstance(state, Carried) else [tuple(map(tensor, pair)) for pair in state]
        if len(pairs) != len(widths) or any(len(tuple(pair)) != 2 for pair in pairs):
            raise ArgumentError(
                f"the state must be a pair (h, c) for each of the {len(widths)} layers, got {len(pairs)}"
            )
        for i, (pair, width) in enumerate(zip(pairs, widths)):
            for name, t in zip("hc", pair):
                fits = t.ndim == 3 and t.shape[0] == 1 and t.shape[2] == width
                if not fits or (isinstance(B, int) and isinstance(t.shape[1], int) and t.shape[1] != B):
                    raise ShapeError(
                        f"the state of layer {i}: {name} must be {[1, B, width]} (1, sequences, width), got "
                        f"{list(t.shape)}; begin another batch without a state"
                    )
        return pairs if isinstance(pairs, Carried) else cls.of(pairs)

    def __iter__(self) -> Iterator[Pair]:
        for h, c in self.layers:
            B, n, C = h.shape
            yield ops.reshape(h, (1, B * n, C)), ops.reshape(c, (1, B * n, C))

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, layer: int) -> Pair:
        return list(self)[layer]

    @property
    def batch(self) -> int | Dim:
        return self.layers[0][0].shape[0]

    def tensors(self) -> dict[str, Tensor]:
        return {f"{i}.{k}": t for i, pair in enumerate(self.layers) for k, t in zip("hc", pair)}

    def rebuilt(self, tensors: Mapping[str, Tensor]) -> Carried:
        return Carried.named(tensors)

    @classmethod
    def named(cls, tensors: Mapping[str, Tensor]) -> Carried:
        """That whose tensors() these are."""
        return cls(tuple((tensors[f"{i}.h"], tensors[f"{i}.c"]) for i in range(len(tensors) // 2)))

    def select(self, live: Tensor | None, parents: Tensor | None) -> Carried:
        return Carried(tuple((chosen(h, live, parents), chosen(c, live, parents)) for h, c in self.layers))

    def signature(self) -> dict[str, tuple[int | str | Dim, ...]]:
        return {name: (B, "sequences", C) for name, (B, _, C) in super().signature().items()}


def tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(x)


class Aligned:
    """The texts of a batch from column 0 on, whatever padding a mask has: what a recurrence reads.

    lengths [B], None where no mask hides anything. backward: each text from its end.
    """

    def __init__(self, layout: Layout, backward: bool = False):
        self.layout, self.backward = layout, backward
        self.B, self.T = layout.B, layout.T
        self.places: Tensor | None = None  # of each row, b T + its column
        self.lengths: Tensor | None = None
        if isinstance(layout, Packed):
            self.lengths, self.places = layout.lengths, layout.places()

    def pack(self, ids: Tensor) -> Tensor:
        """[B, T] -> rows"""
        return self.layout.pack(ids)

    def columns(self, rows: Tensor) -> Tensor:
        """rows -> [B, T, C], each text from column 0 on"""
        if self.places is not None:
            rows = ops.unpack_rows(rows, self.places, self.B, self.T)
        return self.turned(rows)

    def rows(self, columns: Tensor) -> Tensor:
        """The way back."""
        x = self.turned(columns)
        if self.places is None:
            return x
        return ops.index_select(ops.reshape(x, (self.B * self.T, x.shape[2])), self.places)

    def turned(self, x: Tensor) -> Tensor:
        """A text of a model that reads backward from its other end; what is behind it stays."""
        if not self.backward:
            return x
        lengths, at = spread(self.of_lengths(), self.T), self.positions()
        from_end = ops.sub(ops.affine(lengths, 1, -1), at)
        column = ops.where(ops.less(at, lengths), from_end, ops.broadcast_to(at, (self.B, self.T)))
        first = ops.mul(ops.arange(0, self.B, like=at), count(self.T, at))
        order = ops.reshape(ops.add(spread(first, self.T), column), (self.B * self.T,))
        flat = ops.reshape(x, (self.B * self.T, x.shape[2]))
        return ops.reshape(ops.index_select(flat, order), x.shape)

    def of_lengths(self) -> Tensor:
        """lengths [B] in any case"""
        if self.lengths is not None:
            return self.lengths
        return ops.broadcast_to(ops.reshape(count(self.T, self.layout.ids), (1,)), (self.B,))

    def last(self, columns: Tensor) -> Tensor:
        """The last position of each text; 0 of an empty one.  [B, T, C] -> [B, C]"""
        lengths = self.of_lengths()
        at = ops.equal(spread(ops.affine(lengths, 1, -1), self.T), self.positions())
        return ops.sum(ops.where(ops.reshape(at, (self.B, self.T, 1)), columns, zero(columns)), 1)

    def positions(self) -> Tensor:
        """0 ... T - 1  [1, T]"""
        return ops.reshape(ops.arange(0, self.T, like=self.layout.ids), (1, self.T))


def spread(x: Tensor, T: int | Dim) -> Tensor:
    """[B] -> [B, T]"""
    return ops.broadcast_to(ops.reshape(x, (x.shape[0], 1)), (x.shape[0], T))


def zero(like: Tensor) -> Tensor:
    return ops.full((), 0.0, like.dtype, like=like)
