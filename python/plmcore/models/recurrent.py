"""What families of recurrent networks share: their cells, sequences that run without their padding, and what
a decoder carries in a search.

Shapes: B batch, T length, C width; rows are [B, T, C], or [N, C] where padding was dropped. In a search B
prompts have n sequences each; L layers, H width of a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from plmcore import nn
from plmcore._core import Dim, Tensor, ops
from plmcore.models.alignment import Memory
from plmcore.models.columns import Columns
from plmcore.models.padding import Layout
from plmcore.nn.recurrent import Recurrent
from plmcore.nn.state import State, chosen

CELLS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


def read(
    rnn: Recurrent,
    rows: Tensor,
    layout: Layout,
    state: nn.RecurrentState | None = None,
    reverse: bool = False,
) -> tuple[Tensor, nn.RecurrentState]:
    """A recurrent network over the sequences of a layout: rows, and the state after each sequence. reverse:
    each from its end, the rows stay where they are.
    """
    columns = Columns(layout, reverse)
    y, state = rnn(columns.of(rows), state, columns.lengths)
    return columns.rows(y), state


# ---- decoding ----


@dataclass(frozen=True)
class Carried(State):
    """What the decoder carries for n sequences of each of B prompts.

    h, c: of all layers, [B, n, L, H]; fed: the h~ of the next input, [B, n, H].
    """

    h: Tensor
    c: Tensor | None = None
    fed: Tensor | None = None
    memory: Memory | None = None

    @staticmethod
    def of(
        state: nn.RecurrentState, B: int | Dim, n: int | Dim, fed: Tensor | None, memory: Memory | None
    ) -> Carried:
        """state: of B n sequences."""
        by_sequence = {
            name: ops.reshape(ops.transpose(t, (1, 0, 2)), (B, n, t.shape[0], t.shape[2]))
            for name, t in state.tensors().items()
        }
        return Carried(**by_sequence, fed=fed, memory=memory)

    @property
    def layers(self) -> nn.RecurrentState:
        """As recurrent layers take it: [L, B n, H] each."""
        B, n, L, H = self.h.shape
        found = {
            name: ops.transpose(ops.reshape(t, (B * n, L, H)), (1, 0, 2))
            for name, t in self.own.items()
            if name != "fed"
        }
        return nn.RecurrentState(found["h"], found.get("c"))

    @property
    def top(self) -> Tensor:
        """The state of the top layer.  [B, n, H]"""
        B, n, L, H = self.h.shape
        return ops.reshape(ops.slice(self.h, 2, L - 1, L), (B, n, H))

    @property
    def batch(self) -> int | Dim:
        return self.h.shape[0]

    @property
    def own(self) -> dict[str, Tensor]:
        """Of each sequence."""
        found = {"h": self.h, "c": self.c, "fed": self.fed}
        return {name: t for name, t in found.items() if t is not None}

    def tensors(self) -> dict[str, Tensor]:
        return self.own | ({} if self.memory is None else self.memory.tensors())

    def rebuilt(self, tensors: Mapping[str, Tensor]) -> Carried:
        memory = None if self.memory is None else self.memory.rebuilt(tensors)
        return Carried(tensors["h"], tensors.get("c"), tensors.get("fed"), memory)

    def signature(self) -> dict[str, tuple[int | str | Dim, ...]]:
        """n is one after the prompts and any number later."""
        sizes = super().signature()
        return sizes | {name: (sizes[name][0], "m", *sizes[name][2:]) for name in self.own}

    def select(self, live: Tensor | None, parents: Tensor | None) -> Carried:
        memory = self.memory if self.memory is None or live is None else self.memory.select(live)
        own = {name: chosen(t, live, parents) for name, t in self.own.items()}
        return replace(self, **own, memory=memory)

    def where(self, goes_on: Tensor, after: Carried) -> Carried:
        """`after` for the prompts that go on.  bool [B]"""
        own = {}
        for name, t in self.own.items():
            rows = ops.reshape(goes_on, (self.batch, *(1 for _ in t.shape[1:])))
            own[name] = ops.where(rows, after.own[name], t)
        return replace(self, **own, memory=self.memory)
