"""No work on padding: where the rows of a batch lie while they run through a model.

A Layout turns [B, T, ...] into rows and back, says what attention must know about them, and finds the rows
that heads read. Rows are [B, T, C] where there is no padding and for Padded, [N, C] for Packed. Positions
that the attention mask hides are 0 in everything that leaves a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plmcore._core import ArgumentError, Dim, ShapeError, Tensor, TraceError, ops
from plmcore.models.outputs import Output

FIRST, EVERYWHERE = "first", "everywhere"  # what a head reads; a tensor of labels: the positions it labels
Reads = Sequence["str | Tensor | None"]


class Layout:
    """Of a batch without padding: rows are [B, T, C]. The base of the others."""

    cache: Any = None  # a models.cache.KeyValues that a decoder fills and reads

    def __init__(self, ids: Tensor, weights: bool = False):
        """ids: anything of the batch that is [B, T, ...]"""
        self.B, self.T = ids.shape[:2]
        self.ids = ids
        self.collected: list[Tensor] | None = [] if weights else None
        self.attention: dict[str, Any] = {"weights": self.collected} if weights else {}

    def pack(self, x: Tensor) -> Tensor:
        """[B, T, ...] -> rows"""
        return x

    def positions(self) -> Tensor:
        """0, 1, ..., T - 1, or where the rows lie in there.  [1, T] or [N]"""
        return ops.reshape(ops.arange(0, self.T, like=self.ids), (1, self.T))

    def rows_before(self, columns: Tensor) -> Tensor:
        """How many of a sequence's rows lie in its first so many columns.  int64 [B]"""
        return columns

    def spread(self, rows: Tensor) -> Tensor:
        """rows -> [B, T, ...], anything where the mask hides"""
        return rows

    def unpack(self, rows: Tensor) -> Tensor:
        """rows -> [B, T, ...], 0 where the mask hides"""
        return rows

    def unpack_weights(self, weights: Tensor) -> Tensor:
        return weights

    def first(self, rows: Tensor) -> Tensor:
        """The row of position 0 of each sequence, [B, C]; the head's `reads` must have FIRST."""
        return ops.reshape(ops.slice(rows, 1, 0, 1), (self.B, rows.shape[-1]))

    def labelled(self, rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The rows that have a label, [M, C], and those labels, [M]; the head's `reads` must have them."""
        found, wanted, _ = ops.select_labelled(rows, labels)
        return found, wanted


class Padded(Layout):
    """Padding stays, hidden from attention: for attention weights, and heads that read every position."""

    def __init__(self, mask: Tensor, weights: bool = False):
        super().__init__(mask, weights)
        self.hidden = ops.logical_not(mask)
        self.attention["mask"] = ops.reshape(mask, (self.B, 1, 1, self.T))

    def unpack(self, rows: Tensor) -> Tensor:
        shape = (self.B, self.T, *(1 for _ in rows.shape[2:]))
        return ops.masked_fill(rows, ops.reshape(self.hidden, shape), 0.0)

    def unpack_weights(self, weights: Tensor) -> Tensor:  # [B, H, T, T]
        return ops.masked_fill(weights, ops.reshape(self.hidden, (self.B, 1, self.T, 1)), 0.0)


class Packed(Layout):
    """The rows of all sequences one after the other, [N, C], without padding.

    Masked positions that a head reads (`also`, bool [B, T]) stay as rows that look at the others
    and are not looked at.
    """

    def __init__(self, mask: Tensor, also: Tensor | None = None):
        super().__init__(mask)
        self.keep = mask if also is None else ops.logical_or(mask, also)
        self.index = ops.pack_rows(self.keep, self.keep)[1]  # [N], b * T + t
        self.lengths = ops.sum(ops.cast(self.keep, "int64"), 1)  # [B]
        self.starts = ops.pad(ops.cumsum(self.lengths, 0), [1], [0])  # [B + 1]
        self.attention = {"offsets": self.starts}
        self.hidden = None
        if also is not None:
            visible = self.pack(mask)  # [N]
            keys = ops.unpack_rows(visible, self.places(), self.B, self.T)
            self.attention["mask"] = ops.reshape(keys, (self.B, 1, 1, self.T))
            self.hidden = ops.logical_not(visible)

    def places(self) -> Tensor:
        """[N], b * T + the row's number within its sequence: where rows lie when the sequences begin at 0."""
        # before t, for a row that is kept
        dropped = ops.cumsum(ops.cast(ops.logical_not(self.keep), "int64"), 1)
        return ops.sub(self.index, self.pack(dropped))

    def pack(self, x: Tensor) -> Tensor:
        return ops.index_select(ops.reshape(x, (self.B * self.T, *x.shape[2:])), self.index)

    def positions(self) -> Tensor:
        return self.pack(ops.broadcast_to(super().positions(), (self.B, self.T)))

    def rows_before(self, columns: Tensor) -> Tensor:
        inside = ops.less(super().positions(), ops.reshape(columns, (self.B, 1)))
        return ops.sum(ops.cast(ops.logical_and(self.keep, inside), "int64"), 1)

    def spread(self, rows: Tensor) -> Tensor:
        return ops.unpack_rows(rows, self.index, self.B, self.T)

    def unpack(self, rows: Tensor) -> Tensor:
        if self.hidden is not None:
            shape = (self.hidden.shape[0], *(1 for _ in rows.shape[1:]))
            rows = ops.masked_fill(rows, ops.reshape(self.hidden, shape), 0.0)
        return self.spread(rows)

    def first(self, rows: Tensor) -> Tensor:
        return ops.index_select(rows, ops.narrow(self.starts, 0, self.B))

    def labelled(self, rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        N, C = rows.shape
        return super().labelled(ops.reshape(rows, (1, N, C)), ops.reshape(self.pack(labels), (1, N)))


def layout(
    ids: Tensor,
    attention_mask: Tensor | None,
    reads: Reads = (),
    weights: bool = False,
    gapless: bool = False,
) -> Layout:
    """The cheapest layout for ids [B, T, ...]: a mask of ones is none.

    `weights`: attention weights are asked for.

    gapless: rows that follow each other stay so, holes of the mask stay rows, for models that look at the
    distance between rows.
    """
    if attention_mask is None:
        return Layout(ids, weights)
    check_shape("attention_mask", attention_mask, ids.shape[:2])
    seen = values(attention_mask)
    if seen is not None and seen.all():
        return Layout(ids, weights)
    mask = ops.cast(attention_mask, "bool")
    if weights or EVERYWHERE in [r for r in reads if isinstance(r, str)]:
        return Padded(mask, weights)
    also = None
    for what in reads:
        if what is not None and not _within(what, seen):
            marked = _first(mask) if isinstance(what, str) else _labelled(what)
            also = marked if also is None else ops.logical_or(also, marked)
    if gapless and (also is not None or seen is None or _has_gaps(seen)):
        also = _span(mask if also is None else ops.logical_or(mask, also))
    return Packed(mask, also)


def check_ids(
    input_ids: Tensor, most: int | None = None, called: str = "input_ids", **others: Tensor | None
) -> None:
    """input_ids must be whole numbers [B, T] with T at most `most`; `others` must have the same shape."""
    if input_ids.ndim != 2 or input_ids.dtype not in ("int64", "int32"):
        raise ShapeError(
            f"{called} must be whole numbers [batch, length], got {input_ids.dtype} {list(input_ids.shape)}"
        )
    T = input_ids.shape[1]
    if most is not None and isinstance(T, int) and T > most:
        raise ShapeError(
            f"{called}: the length {T} is more than the {most} positions of the model; cut the text "
            f"into pieces"
        )
    for name, tensor in others.items():
        if tensor is not None:
            check_shape(name, tensor, input_ids.shape, called)


@dataclass
class Encoded:
    """A body's result as rows, before it leaves the model: heads work on the rows."""

    rows: Tensor
    layout: Layout
    # of each layer, as rows; None when not asked for
    states: list[Tensor] | None = field(default_factory=list)

    def first(self) -> Tensor:
        return self.layout.first(self.rows)

    def output(self, **fields: Any) -> Output:
        """An Output with these fields, and the hidden states and attentions that were asked for."""
        weights = self.layout.collected
        return Output(
            **fields,
            hidden_states=None if self.states is None else tuple(self.layout.unpack(x) for x in self.states),
            attentions=None if weights is None else tuple(self.layout.unpack_weights(w) for w in weights),
        )


def rows_at(encoded: Encoded, positions: Tensor) -> Tensor:
    """The row of one position of each sequence, which the head's `reads` must have.  positions int64 [B] ->
    [B, C]
    """
    layout, rows = encoded.layout, encoded.rows
    B, T, C = layout.B, layout.T, rows.shape[-1]
    if isinstance(layout, Packed):
        numbers = ops.unpack_rows(ops.arange(0, rows.shape[0], like=rows), layout.index, B, T)
    else:
        numbers = ops.reshape(ops.arange(0, B * T, like=rows), (B, T))
        rows = ops.reshape(rows, (B * T, C))
    return ops.index_select(rows, ops.reshape(ops.gather(numbers, ops.reshape(positions, (B, 1)), 1), (B,)))


def check_shape(name: str, tensor: Tensor, shape: Sequence[int | Dim], like: str = "input_ids") -> None:
    differ = [a != b for a, b in zip(shape, tensor.shape) if isinstance(a, int) and isinstance(b, int)]
    if tensor.ndim != len(shape) or any(differ):
        raise ShapeError(f"{name} must be {list(shape)} like {like}, got {list(tensor.shape)}")


def check_prefix(mask: Tensor, shape: Sequence[int | Dim], like: str = "input_ids") -> None:
    """The mask of a recurrent model: [B, T], and what it hides is behind what it does not."""
    check_shape("attention_mask", mask, shape, like)
    seen = values(mask)
    if seen is not None and (np.diff((seen != 0).astype(np.int8), axis=1) > 0).any():
        raise ArgumentError("attention_mask: padding must be behind the words of each sentence")


def values(t: Tensor) -> np.ndarray | None:
    """What a tensor holds; None while tracing."""
    try:
        return t.numpy()
    except TraceError:
        return None


def _within(what: str | Tensor, seen: np.ndarray | None) -> bool:
    """Whether what a head reads is known to be inside the mask."""
    if seen is None:
        return False
    if isinstance(what, str):
        return bool(seen[:, 0].all())
    labels = values(what)
    return labels is not None and not ((labels != -100) & (seen == 0)).any()


def _has_gaps(seen: np.ndarray) -> bool:
    starts = np.diff((seen != 0).astype(np.int8), axis=1, prepend=0) == 1
    return bool((starts.sum(1) > 1).any())


def _span(keep: Tensor) -> Tensor:
    """All from the first to the last that is kept.  bool [B, T]"""
    ones = ops.cast(keep, "int64")
    before = ops.cumsum(ones, 1)  # itself among those before it
    after = ops.sub(ops.add(ops.sum(ones, 1, True), ones), before)
    return ops.logical_and(before > 0, after > 0)


def _first(mask: Tensor) -> Tensor:
    T = mask.shape[1]
    return ops.broadcast_to(ops.reshape(ops.arange(0, T, like=mask) == 0, (1, T)), mask.shape)


def _labelled(labels: Tensor) -> Tensor:
    return labels != -100
