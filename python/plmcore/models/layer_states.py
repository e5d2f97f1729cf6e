"""What LSTMs of several widths, one above the other, carry from call to call.

Shapes: B batch, n sequences of each prompt, C width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plmcore._core import ArgumentError, Dim, ShapeError, Tensor, ops
from plmcore.nn.state import State, chosen

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class LayerStates(State):
    """(h, c) of LSTMs of any widths, a pair for each, as nn.LSTM has them: `for h, c in state`, [1, B, C].

    Kept as [B, n, C]: in a search each of B prompts has n sequences.
    """

    layers: tuple[Pair, ...]

    @classmethod
    def zeros(cls, widths: Sequence[int], like: Tensor) -> LayerStates:
        """Before the first token of texts.  like [B, ...]"""
        made = (ops.full((like.shape[0], 1, width), 0.0, like.dtype, like=like) for width in widths)
        return cls(tuple((zero, zero) for zero in made))

    @classmethod
    def of(cls, pairs: Sequence[Sequence[Tensor]], n: int | Dim = 1) -> LayerStates:
        """Of what layers have given.  [1, B n, C] each"""

        def apart(x: Tensor) -> Tensor:
            rows: Any = x.shape[1]
            return ops.reshape(x, (rows // n, n, x.shape[2]))

        return cls(tuple((apart(h), apart(c)) for h, c in pairs))

    @classmethod
    def given(cls, state: Any, widths: Sequence[int], B: int | Dim) -> LayerStates:
        """A caller's state, one of these or pairs for each layer, which must fit."""
        pairs = state if isinstance(state, LayerStates) else [tuple(map(tensor, pair)) for pair in state]
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
        return pairs if isinstance(pairs, LayerStates) else cls.of(pairs)

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

    def rebuilt(self, tensors: Mapping[str, Tensor]) -> LayerStates:
        return LayerStates.named(tensors)

    @classmethod
    def named(cls, tensors: Mapping[str, Tensor]) -> LayerStates:
        """That whose tensors() these are."""
        return cls(tuple((tensors[f"{i}.h"], tensors[f"{i}.c"]) for i in range(len(tensors) // 2)))

    def select(self, live: Tensor | None, parents: Tensor | None) -> LayerStates:
        return LayerStates(
            tuple((chosen(h, live, parents), chosen(c, live, parents)) for h, c in self.layers)
        )

    def signature(self) -> dict[str, tuple[int | str | Dim, ...]]:
        return {name: (B, "sequences", C) for name, (B, _, C) in super().signature().items()}


def tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(x)
