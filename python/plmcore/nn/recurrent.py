"""Recurrent layers over whole sequences: LSTM, GRU, RNN, with the parameters of torch.nn."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from plmcore._core import ArgumentError, Dim, ShapeError, Tensor, ops
from plmcore.nn import init
from plmcore.nn.module import Module
from plmcore.nn.parameter import Parameter
from plmcore.nn.state import State, chosen


@dataclass(frozen=True)
class RecurrentState(State):
    """What a recurrent layer carries: h, and the c of an LSTM.  [layers · directions, B n, ·]

    In a search B prompts have n sequences each, one after the other.
    """

    h: Tensor
    c: Tensor | None = None
    n: int = 1

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors().values())

    def tensors(self) -> dict[str, Tensor]:
        return {"h": self.h} if self.c is None else {"h": self.h, "c": self.c}

    def rebuilt(self, tensors: Mapping[str, Tensor]) -> RecurrentState:
        return RecurrentState(tensors["h"], tensors.get("c"), self.n)

    @property
    def batch(self) -> int | Dim:
        rows = self.h.shape[1]
        return rows if self.n == 1 else rows // self.n

    def select(self, live: Tensor | None, parents: Tensor | None) -> RecurrentState:
        def selected(x: Tensor) -> Tensor:
            L, rows, C = x.shape
            by_prompt = ops.reshape(ops.transpose(x, (1, 0, 2)), (self.batch, self.n, L * C))
            found = chosen(by_prompt, live, parents)
            return ops.transpose(ops.reshape(found, (found.shape[0] * found.shape[1], L, C)), (1, 0, 2))

        n = self.n if parents is None else int(parents.shape[1])
        return replace(self.rebuilt({name: selected(t) for name, t in self.tensors().items()}), n=n)


class Recurrent(Module):
    """The base of LSTM, GRU and RNN: layers, directions, parameters and states. A subclass has the cell."""

    gates: ClassVar[int]
    parts: ClassVar[tuple[str, ...]] = ("h",)  # of a state

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int = 1,
        *,
        bidirectional: bool = False,
        projection: int = 0,
        dropout: float = 0.0,
        bias: bool = True,
        weight_init: init.Init | None = None,
    ):
        """weight_init: of all parameters; None: uniform within 1 / sqrt(hidden)."""
        name = type(self).__name__
        if inputs < 1 or hidden < 1 or layers < 1 or projection < 0:
            raise ArgumentError(
                f"{name}: inputs, hidden and layers must be positive and projection not negative, got "
                f"{inputs}, {hidden}, {layers} and {projection}"
            )
        if not 0 <= dropout < 1:
            raise ArgumentError(f"{name}: dropout must be in [0, 1), got {dropout}")
        self.inputs, self.hidden, self.layers = inputs, hidden, layers
        self.bidirectional, self.projection, self.dropout = bidirectional, projection, dropout
        bound = 1 / math.sqrt(hidden)
        draw = init.uniform(-bound, bound) if weight_init is None else weight_init
        G, P = self.gates * hidden, self.out_width
        for layer in range(layers):
            width = inputs if layer == 0 else P * self.directions
            for end in self.ends(layer):
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (G, width), "weight_hh": (G, P)}
                if bias:
                    shapes |= {"bias_ih": (G,), "bias_hh": (G,)}
                if projection:
                    shapes["weight_hr"] = (projection, hidden)
                for kind, shape in shapes.items():
                    setattr(self, f"{kind}_{end}", Parameter.new(draw, shape))

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def out_width(self) -> int:
        """Of one direction."""
        return self.projection or self.hidden

    def ends(self, layer: int) -> list[str]:
        """How the names of a layer's parameters end, for each direction."""
        return [f"l{layer}", f"l{layer}_reverse"][: self.directions]

    def __call__(
        self,
        x: Tensor,
        state: RecurrentState | Sequence[Tensor] | Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> tuple[Tensor, RecurrentState]:
        """x [B, T, inputs] -> y [B, T, directions · width], the state after each sequence's last step.

        lengths [B]: the steps of each sequence; y is 0 behind them. state: of a call before; None: zeros.
        """
        return self.run(x, state, lengths, lambda weight: weight)

    def run(
        self,
        x: Tensor,
        state: RecurrentState | Sequence[Tensor] | Tensor | None,
        lengths: Tensor | None,
        recurrent: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, RecurrentState]:
        """The same with recurrent(weight) in place of each recurrent weight."""
        if len(x.shape) != 3:
            raise ShapeError(f"{type(self).__name__}: x must be [B, T, {self.inputs}], got {list(x.shape)}")
        state = self.begin(x) if state is None else self.given(x, state)
        lengths = None if lengths is None else Tensor(lengths) if not isinstance(lengths, Tensor) else lengths
        after: list[tuple[Tensor, ...]] = []
        for layer in range(self.layers):
            project = of_real_rows(x, lengths)
            ys = []
            for end in self.ends(layer):
                before = tuple(t[len(after)] for t in state)
                y, *last = self.layer(project, end, before, lengths, recurrent)
                ys.append(y)
                after.append(tuple(last))
            x = ys[0] if len(ys) == 1 else ops.concat(ys, 2)
            if self.training and self.dropout and layer + 1 < self.layers:
                x = ops.dropout(x, self.dropout)
        names = state.tensors()
        stacked = [ops.concat([ops.reshape(t, (1, *t.shape)) for t in ts], 0) for ts in zip(*after)]
        return x, state.rebuilt(dict(zip(names, stacked)))

    def weights(self, end: str) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """weight_ih, weight_hh, bias_ih, bias_hh of a layer and direction."""
        bias_ih, bias_hh = (getattr(self, f"{kind}_{end}", None) for kind in ("bias_ih", "bias_hh"))
        return getattr(self, f"weight_ih_{end}"), getattr(self, f"weight_hh_{end}"), bias_ih, bias_hh

    def shapes(self, x: Tensor) -> tuple[tuple[int | Dim, ...], tuple[int | Dim, ...]]:
        """Of h and c for the sequences of x."""
        rows = (self.layers * self.directions, x.shape[0])
        return (*rows, self.out_width), (*rows, self.hidden)

    def begin(self, x: Tensor) -> RecurrentState:
        """Zeros for the sequences of x."""
        h, c = (ops.full(shape, 0.0, x.dtype, like=x) for shape in self.shapes(x))
        return self.state_of(h, c)

    @staticmethod
    def state_of(h: Tensor, c: Tensor) -> RecurrentState:
        """Of all layers; c is for those that have one."""
        return RecurrentState(h)

    def given(self, x: Tensor, state: RecurrentState | Sequence[Tensor] | Tensor) -> RecurrentState:
        """The caller's state, which must fit x."""
        if not isinstance(state, RecurrentState):
            h, *c = (state,) if isinstance(state, Tensor) else state
            state = RecurrentState(h, c[0] if c else None)
        name, wanted = type(self).__name__, self.parts
        if (*state.tensors(),) != wanted:
            raise ArgumentError(
                f"{name}: the state must have {' and '.join(wanted)}, got {' and '.join(state.tensors())}"
            )
        for (part, t), shape in zip(state.tensors().items(), self.shapes(x)):
            sizes = zip(t.shape, shape)
            if len(t.shape) != 3 or any(
                isinstance(a, int) and isinstance(b, int) and a != b for a, b in sizes
            ):
                raise ShapeError(
                    f"{name}: {part} of the state must be {list(shape)} (layers · directions, sequences, "
                    f"width), got {list(t.shape)}"
                )
        return state

    @abstractmethod
    def layer(
        self,
        project: Callable[..., Tensor],
        end: str,
        before: tuple[Tensor, ...],
        lengths: Tensor | None,
        recurrent: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, ...]:
        """One layer in one direction: y and the state. project(weight, bias) is the input's product."""

    def describe(self) -> str:
        options = [str(self.inputs), str(self.hidden)]
        options += [f"layers={self.layers}"] if self.layers > 1 else []
        options += ["bidirectional"] if self.bidirectional else []
        options += [f"projection={self.projection}"] if self.projection else []
        options += [f"dropout={self.dropout}"] if self.dropout else []
        return ", ".join(options)


def of_real_rows(x: Tensor, lengths: Tensor | None) -> Callable[..., Tensor]:
    """(weight, bias) -> linear(x, weight, bias), which nothing is computed of behind the ends."""
    if lengths is None:
        return lambda weight, bias: ops.linear(x, weight, bias)
    B, T = x.shape[:2]
    at = ops.reshape(ops.arange(0, T, dtype=lengths.dtype, like=x), (1, T))
    rows, index = ops.pack_rows(x, ops.less(at, ops.reshape(lengths, (B, 1))))
    return lambda weight, bias: ops.unpack_rows(ops.linear(rows, weight, bias), index, B, T)


def both(bias_ih: Tensor | None, bias_hh: Tensor | None) -> Tensor | None:
    return bias_hh if bias_ih is None or bias_hh is None else ops.add(bias_ih, bias_hh)


class LSTM(Recurrent):
    """Long short-term memory: i, f, o = sigmoid, g = tanh of W_ih x + b_ih + W_hh h + b_hh; c = f c + i g;
    h = o tanh c, or W_hr (o tanh c) with a projection.

    dropout: between layers. cell_clip, projection_clip: bounds of c and of the projected h. reverse: each
    sequence is read from its end.
    """

    gates = 4
    parts = ("h", "c")

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int = 1,
        *,
        bidirectional: bool = False,
        projection: int = 0,
        dropout: float = 0.0,
        bias: bool = True,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
        weight_init: init.Init | None = None,
        reverse: bool = False,
    ):
        if reverse and bidirectional:
            raise ArgumentError("LSTM: reverse is for one direction, and bidirectional has both")
        super().__init__(
            inputs,
            hidden,
            layers,
            bidirectional=bidirectional,
            projection=projection,
            dropout=dropout,
            bias=bias,
            weight_init=weight_init,
        )
        for name, clip in (("cell_clip", cell_clip), ("projection_clip", projection_clip)):
            if clip is not None and not clip > 0:
                raise ArgumentError(f"LSTM: {name} must be positive, got {clip}")
        self.cell_clip, self.projection_clip, self.reverse = cell_clip, projection_clip, reverse

    @staticmethod
    def state_of(h: Tensor, c: Tensor) -> RecurrentState:
        """Of all layers."""
        return RecurrentState(h, c)

    def layer(
        self,
        project: Callable[..., Tensor],
        end: str,
        before: tuple[Tensor, ...],
        lengths: Tensor | None,
        recurrent: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, ...]:
        weight_ih, weight_hh, bias_ih, bias_hh = self.weights(end)
        h, c = before
        y, h, c = ops.lstm(
            project(weight_ih, both(bias_ih, bias_hh)),
            recurrent(weight_hh),
            h,
            c,
            getattr(self, f"weight_hr_{end}", None),
            lengths,
            self.reverse or end.endswith("_reverse"),
            self.cell_clip or 0.0,
            self.projection_clip or 0.0,
        )
        return y, h, c


class GRU(Recurrent):
    """Gated recurrent units: r, z = sigmoid of W_ih x + b_ih + W_hh h + b_hh;
    n = tanh(W_in x + b_in + r (W_hn h + b_hn)); h = (1 - z) n + z h.

    dropout: between layers.
    """

    gates = 3

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int = 1,
        *,
        bidirectional: bool = False,
        dropout: float = 0.0,
        bias: bool = True,
        weight_init: init.Init | None = None,
    ):
        super().__init__(
            inputs,
            hidden,
            layers,
            bidirectional=bidirectional,
            dropout=dropout,
            bias=bias,
            weight_init=weight_init,
        )

    def layer(
        self,
        project: Callable[..., Tensor],
        end: str,
        before: tuple[Tensor, ...],
        lengths: Tensor | None,
        recurrent: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, ...]:
        weight_ih, weight_hh, bias_ih, bias_hh = self.weights(end)
        inside = None
        if bias_hh is not None:
            gates, inside = ops.split(bias_hh, (2 * self.hidden, self.hidden), 0)
            zero = ops.full((self.hidden,), 0.0, gates.dtype, like=gates)
            bias_hh = ops.concat([gates, zero], 0)
        x = project(weight_ih, both(bias_ih, bias_hh))
        y, h = ops.gru(x, recurrent(weight_hh), inside, before[0], lengths, end.endswith("_reverse"))
        return y, h


class RNN(Recurrent):
    """h = activation(W_ih x + b_ih + W_hh h + b_hh), activation tanh or relu.

    dropout: between layers.
    """

    gates = 1

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int = 1,
        *,
        activation: str = "tanh",
        bidirectional: bool = False,
        dropout: float = 0.0,
        bias: bool = True,
    ):
        if activation not in ("tanh", "relu"):
            raise ArgumentError(f"RNN: activation must be tanh or relu, got {activation!r}")
        super().__init__(inputs, hidden, layers, bidirectional=bidirectional, dropout=dropout, bias=bias)
        self.activation = activation

    def layer(
        self,
        project: Callable[..., Tensor],
        end: str,
        before: tuple[Tensor, ...],
        lengths: Tensor | None,
        recurrent: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, ...]:
        weight_ih, weight_hh, bias_ih, bias_hh = self.weights(end)
        x = project(weight_ih, both(bias_ih, bias_hh))
        reverse = end.endswith("_reverse")
        y, h = ops.rnn(x, recurrent(weight_hh), before[0], lengths, reverse, self.activation)
        return y, h


class DropConnect(Module):
    """A recurrent layer whose recurrent weights lose elements while it trains: each is 0 with probability p,
    else scaled by 1 / (1 - p); one mask for all steps of a call.
    """

    def __init__(self, layer: Recurrent, p: float = 0.5):
        if not 0 <= p < 1:
            raise ArgumentError(f"DropConnect: p must be in [0, 1), got {p}")
        self.layer, self.p = layer, p

    def __call__(
        self,
        x: Tensor,
        state: RecurrentState | Sequence[Tensor] | Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> tuple[Tensor, RecurrentState]:
        """As the layer."""
        return self.layer.run(x, state, lengths, self.dropped)

    def dropped(self, weight: Tensor) -> Tensor:
        """A recurrent weight as this call uses it."""
        return ops.dropout(weight, self.p) if self.training and self.p else weight

    def describe(self) -> str:
        return f"p={self.p}"
