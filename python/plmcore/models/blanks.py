"""Blanks of a text, filled one token at a time by a decoder with two positions (GLM).

A text with K masks is read once; then a piece for each mask is written, from left to right. In the sequences
of a search a piece ends with the end token; the next run takes the start token of the next piece instead, at
the place of the next mask.

Shapes: B texts, n sequences of each, K masks, T length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from plmcore._core import Dim, Tensor, ops
from plmcore.models.cache import KeyValues, of_rows
from plmcore.models.causal_attention import LOWEST
from plmcore.models.generates import Decodes
from plmcore.models.padding import rows_at
from plmcore.models.relative import count
from plmcore.nn.state import State, chosen


class Pieces(NamedTuple):
    """The ids of the tokens around a piece, and the most tokens that one has."""

    start: int
    end: int
    limit: int


@dataclass(frozen=True)
class Filling(State):
    """Keys and values, and where each sequence is: in which blank, at which place of its piece."""

    cache: KeyValues
    places: Tensor  # of the masks in the text, int64 [B, K]
    blank: Tensor  # int64 [B, n], from 0
    place: Tensor  # int64 [B, n], of the newest token; the start token's is 1
    pieces: Pieces
    runs: int = 0  # after the text

    @property
    def batch(self) -> int | Dim:
        return self.blank.shape[0]

    def tensors(self) -> dict[str, Tensor]:
        own = {"places": self.places, "blank": self.blank, "place": self.place}
        return own | {f"cache.{name}": t for name, t in self.cache.tensors().items()}

    def rebuilt(self, tensors: Mapping[str, Tensor]) -> Self:
        kept = self.cache.rebuilt({name: tensors[f"cache.{name}"] for name in self.cache.tensors()})
        return replace(
            self, cache=kept, places=tensors["places"], blank=tensors["blank"], place=tensors["place"]
        )

    def select(self, live: Tensor | None, parents: Tensor | None) -> Self:
        return replace(
            self,
            cache=self.cache.select(live, parents),
            places=self.places if live is None else of_rows(self.places, live),
            blank=chosen(self.blank, live, parents),
            place=chosen(self.place, live, parents),
        )

    def reserve(self, n: int, runs: int | None = None) -> Self:
        return replace(self, cache=self.cache.reserve(n, runs))

    def grown(self, n: int | Dim) -> Self:
        return replace(self, cache=self.cache.grown(n))

    def after(self, tokens: Tensor) -> tuple[Tensor, Self]:
        """What the next run takes for these tokens, and the state of it.  [B, n]"""
        B, n = tokens.shape
        one, start = (ops.full((), i, "int64", like=tokens) for i in (1, self.pieces.start))
        ended = tokens == self.pieces.end
        last = count(self.places.shape[1], tokens) - 1
        blank = ops.minimum(ops.add(self.blank, ops.cast(ended, "int64")), last)
        place = ops.where(ended, one, self.place + 1)
        return ops.where(ended, start, tokens), replace(
            self, cache=self.cache.extended(B, n), blank=blank, place=place, runs=self.runs + 1
        )

    @property
    def positions(self) -> Tensor:
        """Of the masks that are being filled.  int64 [B, n]"""
        B = self.blank.shape[0]
        return ops.gather_beams(ops.broadcast_to(self.places, (B, self.places.shape[1])), self.blank)

    def limited(self, logits: Tensor) -> Tensor:
        """After `limit` tokens only the end may follow.  [B, n, V]"""
        if self.runs < self.pieces.limit:
            return logits
        B, n, V = logits.shape
        full = ops.reshape(self.place > self.pieces.limit, (B, n, 1))
        low, zero = (ops.full((), x, logits.dtype, like=logits) for x in (LOWEST[logits.dtype], 0.0))
        is_end = ops.arange(0, V, like=logits) == self.pieces.end
        return ops.where(full, ops.reshape(ops.where(is_end, zero, low), (1, 1, V)), logits)


class Fills(Decodes):
    """A decoder that also writes pieces. Its body's encode takes position_ids, block_position_ids and
    source_lengths.
    """

    body: Any

    def read(
        self, input_ids: Tensor, source_lengths: Tensor, places: Tensor, pieces: Pieces, **inputs: Any
    ) -> tuple[Tensor, State]:
        """Texts with a start token behind each -> logits [B, V] of the first token of the first pieces.

        places: of the masks, int64 [B, K]. inputs: attention_mask, where texts are padded on the right.
        """
        B, T = input_ids.shape
        mask = inputs.get("attention_mask")
        cache = KeyValues.begin(input_ids, mask)
        column = ops.reshape(ops.arange(0, T, like=input_ids), (1, T))
        text = ops.less(column, ops.reshape(source_lengths, (B, 1)))  # [B, T]
        first = ops.slice(places, 1, 0, 1)  # [B, 1]
        zero = ops.full((), 0, "int64", like=input_ids)
        encoded = self.body.encode(
            input_ids,
            ops.where(text, ops.broadcast_to(column, (B, T)), first),
            ops.where(text, zero, ops.full((), 1, "int64", like=input_ids)),
            source_lengths,
            mask,
            cache=cache,
        )
        rows = rows_at(encoded, ops.broadcast_to(cache.last, (B,)))
        begun = ops.full((B, 1), 0, "int64", like=input_ids)
        return self.logits(rows), Filling(cache, places, begun, begun + 1, pieces)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        if not isinstance(state, Filling):
            return super().step(tokens, state)
        state.check_batch(tokens.shape[0])
        ids, state = state.after(tokens)
        rows = self.body.encode(ids, state.positions, state.place, cache=state.cache).rows
        return state.limited(self.logits(rows)), state
