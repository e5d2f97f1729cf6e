"""Text by a model that reads on from what it remembers (Transformer-XL).

Shapes: B prompts, n sequences of each, P memory, S = P + T, H heads, D head width, C width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from plmcore._core import Dim, Tensor, ops
from plmcore.models.generates import Generates
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded, Layout
from plmcore.nn.state import State, chosen


@dataclass
class Remembered(Encoded):
    """content: the input of each layer; keys: of each layer, [B, S, 2 H D]."""

    content: list[Tensor] = field(default_factory=list)
    keys: list[Tensor] = field(default_factory=list)
    mems: Callable[[], tuple[Tensor, ...]] | None = None  # of each layer, [P, B, C]

    def output(self, **fields: Any) -> Output:
        return super().output(**fields, mems=self.mems)


@dataclass(frozen=True)
class Keys(State):
    """Keys and values of what a model remembers, of each layer: a run need not make them of the memory.
    [B, n, P, 2 H D], n sequences of B prompts
    """

    layers: tuple[Tensor, ...]

    @classmethod
    def of(cls, keys: Sequence[Tensor], n: int | Dim, most: int) -> Keys:
        """Of the keys of B n rows the last `most`, 0: all. A length that has no number yet is more than that:
        what comes before a text is as long as the memory.  [B n, S, 2 H D]
        """
        rows: Any = keys[0].shape[0]
        S, width = keys[0].shape[1:]
        if most and not (isinstance(S, int) and S <= most):
            keys, S = [ops.slice(kv, 1, S - most, S) for kv in keys], most
        return cls(tuple(ops.reshape(kv, (rows // n, n, S, width)) for kv in keys))

    def rows(self) -> list[Tensor]:
        """[B n, P, 2 H D] of each layer"""
        B, n, P, width = self.layers[0].shape
        return [ops.reshape(kv, (B * n, P, width)) for kv in self.layers]

    @property
    def batch(self) -> int | Dim:
        return self.layers[0].shape[0]

    def tensors(self) -> dict[str, Tensor]:
        return {str(i): kv for i, kv in enumerate(self.layers)}

    def rebuilt(self, tensors: Mapping[str, Tensor]) -> Keys:
        return Keys(tuple(tensors[str(i)] for i in range(len(tensors))))

    def signature(self) -> dict[str, tuple[int | str | Dim, ...]]:
        """All layers remember as much, of any number of sequences."""
        P, width = self.layers[0].shape[2:]
        length = P if isinstance(P, int) else "P"
        return {name: ("B", "sequences", length, width) for name in self.tensors()}

    def select(self, live: Tensor | None, parents: Tensor | None) -> Keys:
        return Keys(tuple(chosen(kv, live, parents) for kv in self.layers))


class Recalls(Generates):
    """A head whose body has encode and run(ids, past keys, layout) -> Remembered. A step makes no keys of the
    memory again. With mem_len 0 all of the text is kept, as if it were read again.
    """

    PADS = False
    config: Any
    body: Any

    def logits(self, rows: Tensor) -> Tensor:
        """rows -> [..., V]"""
        raise NotImplementedError

    def prefill(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> tuple[Tensor, State]:
        B, T = input_ids.shape
        encoded: Remembered = self.body.encode(input_ids)
        last = ops.reshape(ops.slice(encoded.rows, 1, T - 1, T), (B, encoded.rows.shape[2]))
        return self.logits(last), Keys.of(encoded.keys, 1, self.config.mem_len)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        state.check_batch(tokens.shape[0])
        B, n = tokens.shape
        ids = ops.reshape(tokens, (B * n, 1))
        encoded = self.body.run(ids, cast(Keys, state).rows(), Layout(ids))
        logits = self.logits(ops.reshape(encoded.rows, (B, n, encoded.rows.shape[2])))
        return logits, Keys.of(encoded.keys, n, self.config.mem_len)
