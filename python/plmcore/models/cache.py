"""What a decoder keeps of the tokens it has seen, so that the next ones cost one row each.

A run over the prompts fills KeyValues; then each run takes one token for n sequences of each prompt, ids [B,
n]. The keys and values of all sequences of a prompt lie in one buffer, [B, R, 2, H, D] for each layer. A slot
of it holds one token, and `seen` says which sequences have that token in their past. So sequences share their
prompt and whatever else they have in common, and when some are dropped and others go on twice, only `seen`
changes. Slots that nobody sees any more are freed when the buffer is full; those of banded layers are when
the band has passed them.

Shapes: B prompts that are still alive, n sequences of each, P slots in use, R slots, H heads, D head width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from plmcore import nn
from plmcore._core import Dim, Tensor, ops
from plmcore.models.padding import Layout
from plmcore.models.relative import count
from plmcore.nn.state import State, chosen

ROOM = 64  # slots that a buffer grows by at least, unless fewer can follow


class Step(Layout):
    """One token for each of n sequences, rows [B, n, C]."""

    def __init__(self, cache: KeyValues, ids: Tensor):
        super().__init__(ids)
        self.cache = cache

    def positions(self) -> Tensor:
        """Of the tokens in their sequences.  int64 [1|B, 1]"""
        last = self.cache.last
        return ops.reshape(last, (last.shape[0], 1))


@dataclass
class Slots:
    """The buffers of the layers with one reach, and what their slots hold.

    positions: [1, P] where it is the same for all prompts. seen: None where every sequence sees all.
    """

    band: int
    stride: int
    positions: Tensor  # int64 [1|B, P]
    seen: Tensor | None  # bool [B, n, P]
    buffers: dict[int, Tensor] = field(default_factory=dict)  # by layer, [B, R, 2, H, D]
    new: int | Dim = 0  # how many of the last slots are for tokens of this run
    last: Tensor | None = None  # where these tokens stand, int64 [1|B]
    visible: dict[str, Tensor] = field(default_factory=dict)  # what attention must know in this run

    @property
    def used(self) -> Any:
        return self.positions.shape[1]

    @property
    def size(self) -> tuple[Any, Any]:
        """B and R."""
        B, R = next(iter(self.buffers.values())).shape[:2]
        return B, R

    def changed(self, function: Callable[[Tensor], Tensor], **fields: Any) -> Slots:
        return replace(self, buffers={layer: function(kv) for layer, kv in self.buffers.items()}, **fields)

    def select(self, live: Tensor | None, parents: Tensor | None) -> Slots:
        slots, seen = self, self.seen
        if live is not None:
            seen = None if seen is None else ops.index_select(seen, live)
            positions = of_rows(self.positions, live)
            slots = self.changed(lambda kv: ops.index_select(kv, live), positions=positions)
        if parents is None:
            return replace(slots, seen=seen)
        B, n = parents.shape
        if seen is not None:
            seen = chosen(seen, None, parents)
        elif n != 1:
            seen = ops.full((B, n, self.used), 1, "bool", like=parents)
        return slots if seen is slots.seen else replace(slots, seen=seen)

    def extended(self, B: Any, n: Any, last: Tensor) -> Slots:
        """With n slots more for the tokens of this run, which stand at `last`."""
        here = ops.broadcast_to(ops.reshape(last, (last.shape[0], 1)), (self.positions.shape[0], n))
        seen = self.seen
        if seen is not None:
            number = ops.arange(0, n, like=last)
            own = ops.equal(ops.reshape(number, (n, 1)), ops.reshape(number, (1, n)))
            seen = ops.concat([seen, ops.broadcast_to(ops.reshape(own, (1, n, n)), (B, n, n))], 2)
        positions = ops.concat([self.positions, here], 1)
        slots = Slots(self.band, self.stride, positions, seen, self.buffers, n, last)
        slots.visible = slots.known()
        return slots

    def known(self) -> dict[str, Tensor]:
        """What attention must know in this run."""
        (B, R), used = self.size, self.used
        known = {"lengths": ops.broadcast_to(count(used, self.positions), (B,))}
        if self.seen is not None:
            seen = self.seen
            if self.band or self.stride:
                reach = in_reach(self.back, self.band, self.stride)  # [1|B, P]
                seen = ops.logical_and(seen, ops.reshape(reach, (reach.shape[0], 1, used)))
            n = seen.shape[1]
            seen = ops.pad(seen, (0, 0, 0), (0, 0, R - used))
            known["mask"] = ops.reshape(seen, (B, 1, n, R))
        return known

    @property
    def back(self) -> Tensor:
        """From each slot to the tokens of this run.  int64 [1|B, P]"""
        assert self.last is not None
        return ops.sub(ops.reshape(self.last, (self.last.shape[0], 1)), self.positions)

    def needed(self, last: Tensor) -> Tensor:
        """Which slots a sequence sees that goes on from `last`.  bool [B, P]"""
        if self.seen is None:
            return ops.full((self.size[0], self.used), 1, "bool", like=last)
        needed = ops.sum(ops.cast(self.seen, "int64"), 1) > 0
        if self.band and not self.stride:
            next_back = ops.sub(ops.reshape(last, (last.shape[0], 1)), self.positions)
            needed = ops.logical_and(needed, next_back < self.band - 1)
        return needed

    def compacted(self, needed: Tensor) -> Slots:
        """Without the slots that no prompt needs; where others need more, some stay that nobody sees."""
        B, P = needed.shape
        places = ops.reshape(ops.arange(0, P, "float32", like=needed), (1, P))
        first = ops.cast(needed, "float32") * float(1 << 22)
        order = ops.topk(ops.sub(first, places), P)[1]  # the needed ones first, in their order
        most = ops.max(ops.sum(ops.cast(needed, "int64"), 1), 0)
        stays = ops.reshape(ops.less(ops.arange(0, P, like=needed), most), (1, P))
        order = ops.pack_rows(ops.reshape(ops.transpose(order, (1, 0)), (1, P, B)), stays)[0]
        order = ops.transpose(order, (1, 0))  # [B, P']
        positions = ops.broadcast_to(self.positions, (B, P))
        seen = self.seen
        if seen is not None:
            seen = ops.transpose(ops.gather_beams(ops.transpose(seen, (0, 2, 1)), order), (0, 2, 1))
        return self.changed(
            lambda kv: ops.gather_beams(kv, order), positions=ops.gather_beams(positions, order), seen=seen
        )

    def widened(self, more: Any) -> Slots:
        """With so many free slots behind those in use."""
        more = more - (self.size[1] - self.used)
        return self.changed(lambda kv: ops.pad(kv, (0, 0, 0, 0, 0), (0, more, 0, 0, 0)))

    def with_room(self, n: int, runs: int | None, last: Tensor) -> Slots:
        """Frees slots if that makes half of the buffers free, else makes them larger."""
        slots = self
        if self.used >= 2 * ROOM and self.seen is not None:
            needed = self.needed(last)
            if 2 * ops.max(ops.sum(ops.cast(needed, "int64"), 1), 0).item() <= self.used:
                slots = self.compacted(needed)
        used = slots.used
        grown = 2 * ROOM if n == 1 else ROOM  # with one sequence there will be nothing to free
        room = -(-max(used + n + grown, used * 3 // 2) // ROOM) * ROOM
        if runs is not None:
            room = min(room, used + n * max(runs, 1))
        return slots.widened(room - used)


class KeyValues(State):
    """Of prompts that begin at position 0 and are padded on the right. A run uses up the state it is given:
    buffers are written in place.

    last: where the newest tokens stand, int64 [1|B].
    """

    def __init__(
        self, last: Tensor, slots: Mapping[tuple[int, int], Slots] | None = None, source: Any = None
    ):
        self.last, self.source = last, source  # of a decoder with an encoder: models.seq2seq.Source
        self.slots = dict(slots or {})  # by (band, stride) of the layers
        self.mask: Tensor | None = None  # of the prompts, while they run

    @classmethod
    def begin(cls, ids: Tensor, mask: Tensor | None) -> Self:
        """For a run over prompts ids [B, T]; mask: as attention_mask, None where none is padded."""
        if mask is None:
            return cls(ops.reshape(count(ids.shape[1], ids) - 1, (1,)))
        mask = ops.cast(mask, "bool")
        state = cls(ops.sum(ops.cast(mask, "int64"), 1) - 1)
        state.mask = mask
        return state

    @property
    def batch(self) -> int | Dim:
        B, _ = next(iter(self.slots.values())).size
        return B

    def tensors(self) -> dict[str, Tensor]:
        named = {"last": self.last}
        for i, slots in enumerate(self.slots.values()):
            named[f"slots.{i}.positions"] = slots.positions
            if slots.seen is not None:
                named[f"slots.{i}.seen"] = slots.seen
            named |= {f"slots.{i}.kv.{k}": kv for k, kv in enumerate(slots.buffers.values())}
        return named | ({} if self.source is None else self.source.tensors())

    def rebuilt(self, tensors: Mapping[str, Tensor]) -> Self:
        slots = {
            reach: replace(
                s,
                positions=tensors[f"slots.{i}.positions"],
                seen=None if s.seen is None else tensors[f"slots.{i}.seen"],
                buffers={layer: tensors[f"slots.{i}.kv.{k}"] for k, layer in enumerate(s.buffers)},
            )
            for i, (reach, s) in enumerate(self.slots.items())
        }
        source = None if self.source is None else self.source.rebuilt(tensors)
        return type(self)(tensors["last"], slots, source)

    def select(self, live: Tensor | None, parents: Tensor | None) -> Self:
        last, source = self.last, self.source
        if live is not None:
            last = of_rows(last, live)
            source = None if source is None else source.select(live)
        slots = {reach: s.select(live, parents) for reach, s in self.slots.items()}
        return type(self)(last, slots, source)

    def reserve(self, n: int, runs: int | None = None) -> Self:
        if all(s.used + n <= s.size[1] for s in self.slots.values()):
            return self
        slots = {
            reach: s if s.used + n <= s.size[1] else s.with_room(n, runs, self.last)
            for reach, s in self.slots.items()
        }
        return type(self)(self.last, slots, self.source)

    def grown(self, n: int | Dim) -> Self:
        room = (0, n, 0, 0, 0)
        slots = {reach: s.changed(lambda kv: ops.pad(kv, (0,) * 5, room)) for reach, s in self.slots.items()}
        return type(self)(self.last, slots, self.source)

    def signature(self) -> dict[str, tuple[int | str | Dim, ...]]:
        found = super().signature()
        for name in [n for n in found if n.endswith(".seen")]:
            B, _, P = found[name]  # of one sequence for each prompt; there may be more
            found[name] = (B, f"{P}_sequences", P)
        return found

    def extended(self, B: Any, n: Any) -> Self:
        """For a run of ids [B, n]."""
        last = self.last + 1
        slots = {reach: s.extended(B, n, last) for reach, s in self.slots.items()}
        return type(self)(last, slots, self.source)

    def attend(
        self, attn: nn.SelfAttention, qkv: Tensor, layout: Layout, bias: Tensor | None = None
    ) -> Tensor:
        """Causal attention over what is kept and what is new.  rows of 3 H D -> rows of H D"""
        reach = attn.band, attn.stride
        if isinstance(layout, Step):
            slots = self.slots[reach]
            first = slots.used - slots.new
            kv = slots.buffers[id(attn)]
            return ops.attend_cached(qkv, kv, first, scale=attn.scale, bias=bias, **slots.visible)
        rows = qkv.shape[:-1]
        qkv = ops.reshape(qkv, (*rows, 3, attn.heads, attn.depth))
        kv = ops.split(qkv, (1, 2), len(rows))[1]
        if reach not in self.slots:
            self.slots[reach] = self.filled(layout, *reach)
        self.slots[reach].buffers[id(attn)] = layout.spread(kv)
        y = ops.attention(
            qkv,
            causal=True,
            band=attn.band,
            stride=attn.stride,
            scale=attn.scale,
            bias=bias,
            **layout.attention,
        )
        return ops.reshape(y, (*rows, attn.heads * attn.depth))

    def filled(self, layout: Layout, band: int, stride: int) -> Slots:
        B, T = layout.B, layout.T
        positions, seen = ops.reshape(ops.arange(0, T, like=layout.ids), (1, T)), None
        if self.mask is not None:
            positions = ops.broadcast_to(positions, (B, T))
            seen = ops.reshape(self.mask, (B, 1, T))
        elif band or stride:
            seen = ops.full((B, 1, T), 1, "bool", like=layout.ids)
        return Slots(band, stride, positions, seen)

    def distances(self) -> Tensor:
        """From each slot of layers without bands to the tokens of this run, 0 if free.  int64 [1|B, R]"""
        slots = self.slots[0, 0]
        return ops.pad(slots.back, (0, 0), (0, slots.size[1] - slots.used))


def in_reach(back: Tensor, band: int, stride: int) -> Tensor:
    """Whether so far back is among the last `band`, or a multiple of `stride`.  int64 -> bool"""
    near = back < band
    if not stride:
        return near
    steps = ops.cast(ops.affine(ops.cast(back, "float64"), 1 / stride, 0.5 / stride), "int64")  # whole ones
    on = ops.equal(back, steps * stride)
    return ops.logical_or(near, on) if band else on


def of_rows(x: Tensor, live: Tensor) -> Tensor:
    """These rows, unless there is one for all."""
    one = isinstance(x.shape[0], int) and x.shape[0] == 1
    return x if one else ops.index_select(x, live)
