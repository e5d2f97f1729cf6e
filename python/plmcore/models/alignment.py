"""Attention of a recurrent decoder over its source, by Bahdanau et al. (2014) and Luong et al. (2015).

    bahdanau   v_a tanh(W_a s + U_a h)          s: the decoder's state before the step
    dot        s h                              s: the state after it, as of all that follow
    general    s W_a h
    concat     v_a tanh(W_a [s; h])

Weights are the softmax of the scores over the source, c its weighted sum, h~ = tanh(W_c [c; s]).

Shapes: B batch, m states that look, S source length, H width of a state, W of the source, A = H.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models.padding import Encoded, Packed, Padded

KINDS = ("bahdanau", "dot", "general", "concat")
UNSEEN = -1e30  # score of a place that the mask hides


@dataclass(frozen=True)
class Memory:
    """The source as states look at it: made once, for all steps."""

    values: Tensor  # [B, S, W]
    keys: Tensor | None = None  # what scores are made of, [B, S, H]; None: the values
    hidden: Tensor | None = None  # where the mask hides, bool [B, 1, S]; None: nowhere

    def tensors(self) -> dict[str, Tensor]:
        found = {"values": self.values, "keys": self.keys, "hidden": self.hidden}
        return {f"source.{name}": t for name, t in found.items() if t is not None}

    def rebuilt(self, tensors: Mapping[str, Tensor]) -> Memory:
        return Memory(tensors["source.values"], tensors.get("source.keys"), tensors.get("source.hidden"))

    def select(self, live: Tensor) -> Memory:
        return self.rebuilt({name: ops.index_select(t, live) for name, t in self.tensors().items()})


class Alignment(nn.Module):
    """W_a [H, W] (general), [H, H + W] (concat) or [H, H] (bahdanau), U_a [H, W], v_a [H], W_c [H, W + H]."""

    def __init__(self, kind: str, width: int, source_width: int, weight_init: nn.init.Init):
        H, W = width, source_width

        def new(*shape: int) -> nn.Parameter:
            return nn.Parameter.new(weight_init, shape)

        self.kind, self.width, self.source_width = kind, width, source_width
        if kind != "dot":
            self.W_a = new(H, {"general": W, "concat": H + W, "bahdanau": H}[kind])
        if kind == "bahdanau":
            self.U_a = new(H, W)
        if kind in ("bahdanau", "concat"):
            self.v_a = new(H)
        self.W_c = new(H, W + H)

    def memory(self, encoded: Encoded) -> Memory:
        """Of a source that an encoder read."""
        layout = encoded.layout
        values = layout.unpack(encoded.rows)  # [B, S, W]
        hidden = None
        if isinstance(layout, Packed | Padded):
            mask = layout.keep if isinstance(layout, Packed) else ops.logical_not(layout.hidden)
            hidden = ops.reshape(ops.logical_not(mask), (layout.B, 1, layout.T))
        weight: Tensor | None = None
        if self.kind == "general":
            weight = self.W_a
        elif self.kind == "concat":
            weight = ops.slice(self.W_a, 1, self.width, self.width + self.source_width)
        elif self.kind == "bahdanau":
            weight = self.U_a
        return Memory(values, None if weight is None else ops.linear(values, weight), hidden)

    def __call__(self, states: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """What each state sees of the source, and its weights.  [B, m, H] -> [B, m, W], [B, m, S]"""
        scores = self.scores(states, memory.values if memory.keys is None else memory.keys)
        if memory.hidden is not None:
            scores = ops.masked_fill(scores, memory.hidden, UNSEEN)
        weights = ops.softmax(scores)
        return ops.matmul(weights, memory.values), weights

    def scores(self, states: Tensor, keys: Tensor) -> Tensor:
        """[B, m, H], [B, S, H] -> [B, m, S]"""
        if self.kind in ("dot", "general"):
            return ops.matmul(states, keys, transpose_b=True)
        (B, m, _), (_, S, H) = states.shape, keys.shape
        weight = self.W_a if self.kind == "bahdanau" else ops.slice(self.W_a, 1, 0, self.width)
        q = ops.reshape(ops.linear(states, weight), (B, m, 1, H))
        both = ops.tanh(ops.add(q, ops.reshape(keys, (B, 1, S, H))))  # [B, m, S, H]
        return ops.reshape(ops.linear(both, ops.reshape(self.v_a, (1, H))), (B, m, S))

    def combined(self, context: Tensor, states: Tensor) -> Tensor:
        """h~ of what was seen and the state.  [..., W], [..., H] -> [..., H]"""
        return ops.linear(ops.concat([context, states], -1), self.W_c, None, "tanh")

    def describe(self) -> str:
        return f"{self.kind}, {self.width} over {self.source_width}"
