"""What a decoder keeps of the tokens it has seen, so that the next ones cost one row each.

A run over the prompts fills a Cache; then each run takes one token for n sequences of each prompt, ids [B, n]. The keys and values of all
sequences of a prompt lie in one buffer, [B, room, 2, H, D] for each layer. A slot of it holds one token, and `seen` says which sequences have
that token in their past. So sequences share their prompt and whatever else they have in common, and when some are dropped and others
go on twice, only `seen` changes. Slots that nobody sees any more are freed when the buffer is full; those of banded layers are when the band has
passed them.

Shapes: B prompts that are still alive, n sequences of each, P prompt length, H heads, D head width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models.padding import Whole

ROOM = 64  # slots that a buffer grows by at least, unless fewer can follow


class Step(Whole):
    """One token for each of n sequences, rows [B, n, C]."""

    def __init__(self, cache: Cache):
        super().__init__((len(cache.lengths), cache.width))
        self.cache = cache

    def positions(self) -> Tensor:
        """Of the tokens in their sequences.  int64 [B, n]"""
        return Tensor(np.repeat(self.cache.now[:, None], int(self.T), 1))


class Cache:
    """lengths: of the prompts, which begin at position 0 and are padded on the right.  int [B]

    limit: the most tokens that are made for each sequence, where that is known; the last of them is not run.
    """

    def __init__(self, lengths: Sequence[int], limit: int | None = None):
        self.lengths, self.limit = np.asarray(lengths, np.int64), limit
        self.width, self.made = 1, -1  # sequences of each prompt; tokens added to each, -1: the prompts have not run
        self.slots: dict[tuple[int, int], Slots] = {}  # by (band, stride) of the layers
        self.source: Any = None  # of a decoder with an encoder: models.seq2seq.Source

    @property
    def now(self) -> np.ndarray:
        """The position of the tokens of this run, by prompt."""
        return self.lengths + self.made

    def advance(self, live: np.ndarray, parents: np.ndarray) -> None:
        """Before each run but the first: the i-th prompt from now on is live[i] of before, its j-th sequence continues the one numbered parents[i, j]."""
        B = len(self.lengths)
        keep = None if len(live) == B else live  # they keep their order
        if keep is not None:
            self.lengths = self.lengths[keep]
            if self.source is not None:
                self.source.select(Tensor(keep))
        self.made += 1
        self.width = parents.shape[1]
        for slots in self.slots.values():
            slots.advance(keep, parents, self.now, self.runs())

    def runs(self) -> int | None:
        """How many there are from this one on, not counting that over the prompts, if it is known."""
        return None if self.limit is None else self.limit - 1 - max(self.made, 0)

    def layout(self) -> Step:
        return Step(self)

    def attend(self, attn: nn.SelfAttention, qkv: Tensor, layout: Whole, bias: Tensor | None = None) -> Tensor:
        """Causal attention over what is kept and what is new.  rows of 3 H D -> rows of H D"""
        reach = attn.band, attn.stride
        if isinstance(layout, Step):
            slots = self.slots[reach]
            return ops.attend_cached(
                qkv, slots.buffers[id(attn)], slots.first, scale=attn.scale, bias=bias, **slots.visible
            )
        if reach not in self.slots:
            self.slots[reach] = Slots(self.lengths, int(layout.T), *reach)
            if not attn.band:  # else the next run frees slots first
                self.slots[reach].grow(1, self.runs())
        rows = qkv.shape[:-1]
        qkv = ops.reshape(qkv, (*rows, 3, attn.heads, attn.depth))
        kv = ops.split(qkv, (1, 2), len(rows))[1]
        self.slots[reach].fill(attn, layout.spread(kv))
        y = ops.attention(
            qkv, causal=True, band=attn.band, stride=attn.stride, scale=attn.scale, bias=bias, **layout.attention
        )
        return ops.reshape(y, (*rows, attn.heads * attn.depth))

    def distances(self) -> np.ndarray:
        """From each slot of layers without bands to the tokens of this run, 0 for free slots.  int64 [1|B, room]"""
        slots = self.slots[0, 0]
        back = np.maximum(self.now[:, None] - slots.positions, 0)
        return back[:1] if (back == back[:1]).all() else back


class Slots:
    """The buffers of the layers with one reach, and what their slots hold."""

    def __init__(self, lengths: np.ndarray, P: int, band: int, stride: int):
        self.band, self.stride, self.used = band, stride, P
        places = np.arange(P)[None]
        self.positions = np.repeat(places, len(lengths), 0)  # [B, room]
        self.seen = (places < lengths[:, None])[:, None]  # [B, n, room]
        self.masked = bool(band or stride or (lengths < P).any())  # somebody does not see some slot that is used
        self.buffers: dict[int, Tensor] = {}  # by layer
        self.first = P  # slot of the tokens of this run
        self.visible: dict[str, Tensor] = {}  # what attention must know in this run

    def fill(self, attn: nn.SelfAttention, kv: Tensor) -> None:
        self.buffers[id(attn)] = widened(kv, self.positions.shape[1])

    def advance(self, keep: np.ndarray | None, parents: np.ndarray, now: np.ndarray, runs: int | None) -> None:
        """runs: how many there are from this one on, if that is known."""
        if keep is not None:
            self.positions, self.seen = self.positions[keep], self.seen[keep]
            rows = Tensor(keep)
            self.change(lambda kv: ops.index_select(kv, rows))
        B, n = parents.shape
        if n > 1 or self.seen.shape[1] > 1:
            self.masked = True
            self.seen = np.take_along_axis(self.seen, parents[:, :, None], 1)
        if self.used + n > self.positions.shape[1]:
            self.make_room(n, now, runs)
        self.first = self.used
        for j in range(n):
            self.positions[:, self.used + j] = now
            self.seen[:, j, self.used + j] = True
        self.used += n
        self.visible = {"lengths": Tensor(np.full(B, self.used))}
        if self.masked:
            seen = self.seen
            if self.band or self.stride:
                seen = seen & self.in_reach(now[:, None] - self.positions)[:, None]
            self.visible["mask"] = Tensor(seen[:, None])  # [B, 1, n, room]

    def in_reach(self, back: np.ndarray) -> np.ndarray:
        near = back < self.band
        return near | (back % self.stride == 0) if self.stride else near

    def make_room(self, n: int, now: np.ndarray, runs: int | None) -> None:
        """Frees slots if that makes half of the buffers free, else makes them larger."""
        needed = self.seen[..., : self.used].any(1)  # [B, used]
        if self.band and not self.stride:
            needed &= now[:, None] - self.positions[:, : self.used] < self.band
        most = int(needed.sum(1).max())
        if self.used >= 2 * ROOM and 2 * most <= self.used:
            order = np.argsort(~needed, 1, kind="stable")[:, :most]
            chosen = Tensor(order)
            there = np.take_along_axis(needed, order, 1)
            self.seen = np.take_along_axis(self.seen, order[:, None], 2) & there[:, None]
            self.positions, self.used = np.take_along_axis(self.positions, order, 1), most
            self.change(lambda kv: ops.gather_beams(kv, chosen))
        self.grow(n, None if runs is None else max(runs, 1))

    def grow(self, n: int, runs: int | None) -> None:
        """Room for more tokens of n sequences."""
        grown = 2 * ROOM if n == 1 else ROOM  # with one sequence there will be nothing to free
        room = -(-max(self.used + n + grown, self.used * 3 // 2) // ROOM) * ROOM
        if runs is not None:
            room = min(room, self.used + n * runs)
        more = room - self.used
        self.positions = np.pad(self.positions[:, : self.used], ((0, 0), (0, more)))
        self.seen = np.pad(self.seen[..., : self.used], ((0, 0), (0, 0), (0, more)))
        self.change(lambda kv: widened(kv, room))

    def change(self, function: Any) -> None:
        for key, kv in self.buffers.items():
            self.buffers[key] = function(kv)


def widened(kv: Tensor, room: int) -> Tensor:
    """[B, P, 2, H, D] -> [B, room, 2, H, D]"""
    more = room - kv.shape[1]
    return ops.pad(kv, (0, 0, 0, 0, 0), (0, more, 0, 0, 0)) if more else kv
