"""Optimisers. They step all parameters in one native call, in place.

    opt = plm.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    opt.zero_grad()
    loss.backward()
    norm = opt.step(clip_norm=1.0)      # the norm before clipping
    opt.lr = schedule(step)             # a plain attribute

Parameters may come in groups with their own lr and weight_decay:

    plm.optim.AdamW([dict(params=body, weight_decay=0.1), dict(params=head, lr=1e-3)], lr=1e-4)

A group's lr keeps its ratio to the optimiser's: setting opt.lr moves all groups. adapt=False keeps LAMB's
ratio from a group, as published for biases and norms; the others have no use for it. max_norm=3.0 keeps each
row of a group's matrices from growing longer than that, after every step.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plmcore import _core
from plmcore._core import ArgumentError, Dim, KindError, ParamState, Tensor, ops
from plmcore.runtime.autograd import no_grad


@dataclass
class Group:
    """Parameters with the same options."""

    states: list[ParamState] = field(repr=False)
    weight_decay: float
    lr_ratio: float = 1.0  # to the optimiser's lr
    adapt: bool = True  # whether LAMB's steps are as long as the parameter
    max_norm: float | None = None  # of a row


class Optimizer:
    """The base of the optimisers. A step skips parameters without a gradient.

    A row-sparse gradient gives the same bits as a dense one, unless lazy=True, which then leaves the other
    rows and their moments untouched.
    """

    kind = ""
    moments: tuple[str, ...] = ("m", "v")

    def __init__(
        self, params: Iterable[Any], lr: float, *, weight_decay: float, lazy: bool = False, **options: float
    ):
        if isinstance(params, Tensor):
            raise KindError(
                f"{type(self).__name__}: parameters must come in a list, got one tensor {list(params.shape)}"
            )
        self.lr = lr
        self.lazy = lazy
        self.options = options
        self.groups = self._grouped(list(params), weight_decay)
        self.states = [s for g in self.groups for s in g.states]

    def _grouped(self, params: list[Any], weight_decay: float) -> list[Group]:
        name = type(self).__name__
        if not params:
            raise ArgumentError(f"{name}: there are no parameters to optimise")
        groups: list[Any] = params if isinstance(params[0], Mapping) else [{"params": params}]
        result, seen = [], set()
        for g in groups:
            if unknown := set(g) - {"params", "lr", "weight_decay", "adapt", "max_norm"}:
                raise ArgumentError(
                    f"{name}: a group has params, lr, weight_decay, adapt and max_norm, got also "
                    f"{', '.join(sorted(unknown))}"
                )
            if (most := g.get("max_norm")) is not None and not most > 0:
                raise ArgumentError(f"{name}: max_norm of a group must be positive, got {most}")
            members = list(g["params"])
            for p in members:
                if not isinstance(p, Tensor):
                    raise KindError(
                        f"{name}: parameters must be tensors, got {type(p).__name__}; pass model.parameters()"
                    )
                if id(p) in seen:
                    raise ArgumentError(f"{name}: a parameter {list(p.shape)} was given twice")
                seen.add(id(p))
            ratio = 1.0
            if "lr" in g:
                if not self.lr > 0:
                    raise ArgumentError(
                        f"{name}: a group with its own lr needs a positive lr of the optimiser to "
                        f"relate to, got {self.lr}"
                    )
                ratio = g["lr"] / self.lr
            states = [ParamState(p) for p in members]
            decay, adapt = g.get("weight_decay", weight_decay), g.get("adapt", True)
            result.append(Group(states, decay, ratio, adapt, most))
        return result

    def zero_grad(self) -> None:
        """Forgets the gradients of all parameters."""
        _core.zero_grad(self.states)

    def norm(self) -> Tensor:
        """The norm of all gradients together, float32 []."""
        return ops.global_norm(_core.gradients(self.states))

    def step(self, clip_norm: float | None = None, norm: Tensor | None = None) -> float | None:
        """One update.

        With clip_norm the gradients count as scaled to a global norm of at most that; returns their norm
        before, which may be given if it is known.
        """
        scale = None
        if clip_norm is not None:
            norm = self.norm() if norm is None else norm
            scale = ops.clip_scale(norm, clip_norm)
        for g in self.groups:
            _core.step_all(self.kind, g.states, self.options_of(g), scale)
            if g.max_norm is not None:
                bound_rows([s.param for s in g.states], g.max_norm)
        return None if norm is None else norm.item()

    def options_of(self, group: Group) -> dict[str, float]:
        """What the step of a group takes."""
        own = {"lr": self.lr * group.lr_ratio, "weight_decay": group.weight_decay}
        return self.options | own | ({"lazy": True} if self.lazy else {})

    def moment_shape(self, param: Tensor, name: str) -> tuple[int | Dim, ...]:
        """The shape of a parameter's state."""
        return param.shape

    def state_dict(self) -> dict[str, Any]:
        """lr, and per parameter, by number, the count of its steps and its moments as arrays.

        It restores the optimiser exactly.
        """
        return {k: np.array(v.numpy()) if isinstance(v, Tensor) else v for k, v in self._state()}

    def live_state(self) -> dict[str, Any]:
        """The same with the moments themselves, which change with the next step."""
        return dict(self._state())

    def _state(self) -> Iterator[tuple[str, Any]]:
        yield "lr", self.lr
        for i, s in enumerate(self.states):
            yield f"{i}.step", s.step
            for name in self.moments:
                if (moment := getattr(s, name)) is not None:
                    yield f"{i}.{name}", moment

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing is changed when an error is raised."""
        name = type(self).__name__
        expected = {"lr"} | {f"{i}.{key}" for i in range(len(self.states)) for key in ("step", *self.moments)}
        missing = [k for k in ["lr", *(f"{i}.step" for i in range(len(self.states)))] if k not in state]
        unexpected = [k for k in state if k not in expected]
        if missing or unexpected:
            parts = [
                f"{what}: {', '.join(keys)}"
                for what, keys in (("missing", missing), ("unexpected", unexpected))
                if keys
            ]
            raise ArgumentError(
                f"{name}: the state is not that of {len(self.states)} parameters; " + "; ".join(parts)
            )
        loaded = []
        for i, s in enumerate(self.states):
            moments = {
                m: Tensor(state[f"{i}.{m}"], dtype=moment_dtype(s.param), device=s.param.device)
                for m in self.moments
                if f"{i}.{m}" in state
            }
            for m, t in moments.items():
                if t.shape != self.moment_shape(s.param, m):
                    raise ArgumentError(
                        f"{name}: {i}.{m} is {list(t.shape)}, its parameter {list(s.param.shape)}"
                    )
            loaded.append((int(state[f"{i}.step"]), moments))
        self.lr = float(state["lr"])
        for s, (step, moments) in zip(self.states, loaded, strict=True):
            s.step = step
            for m in self.moments:
                setattr(s, m, moments.get(m))


def bound_rows(params: Iterable[Tensor], most: float) -> None:
    """Scales rows that are longer than `most` to that length, in place.  [rows, ...] each"""
    with no_grad():
        for p in params:
            rows = ops.reshape(p, (p.shape[0], math.prod(map(int, p.shape[1:]))))
            length = ops.sqrt(ops.sum(ops.mul(rows, rows), 1, True))
            bound = ops.full((), most, length.dtype, like=length)
            scaled = ops.mul(rows, ops.div(bound, ops.maximum(length, bound)))
            _core.assign(p, ops.reshape(scaled, p.shape))


def moment_dtype(param: Tensor) -> str:
    """Of what an optimiser keeps of a parameter."""
    return "float64" if param.dtype == "float64" else "float32"


class SGD(Optimizer):
    """p -= lr * g, with momentum and Nesterov's variant; weight decay is added to the gradient."""

    kind = "sgd"
    moments = ("m",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
        lazy: bool = False,
    ):
        if nesterov and momentum <= 0:
            raise ArgumentError("SGD: nesterov needs a positive momentum")
        super().__init__(
            params, lr, weight_decay=weight_decay, lazy=lazy, momentum=momentum, nesterov=nesterov
        )


class Adam(Optimizer):
    """Adam; weight decay is added to the gradient."""

    kind = "adam"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        lazy: bool = False,
    ):
        if len(betas) != 2:
            raise ArgumentError(f"{type(self).__name__}: betas must be two numbers, got {list(betas)}")
        super().__init__(
            params, lr, weight_decay=weight_decay, lazy=lazy, beta1=betas[0], beta2=betas[1], eps=eps
        )


class AdamW(Adam):
    """Adam whose weight decay acts on the parameter itself."""

    kind = "adamw"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        lazy: bool = False,
    ):
        super().__init__(params, lr, betas=betas, eps=eps, weight_decay=weight_decay, lazy=lazy)


class BertAdam(Adam):
    """AdamW without bias correction: what BERT was trained with."""

    kind = "bert_adam"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        lazy: bool = False,
    ):
        super().__init__(params, lr, betas=betas, eps=eps, weight_decay=weight_decay, lazy=lazy)


class LAMB(Adam):
    """AdamW whose step of a tensor is as long as the tensor.

        u = m / (sqrt(v) + eps) + weight_decay * p
        p -= lr * |p| / |u| * u

    The ratio is 1 where a norm is 0, and for groups with adapt=False. correct=True frees m and v of their
    bias towards 0, as the paper has it; ALBERT was trained without.
    """

    kind = "lamb"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.76e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        correct: bool = False,
    ):
        super().__init__(params, lr, betas=betas, eps=eps, weight_decay=weight_decay)
        self.correct = correct

    def options_of(self, group: Group) -> dict[str, float]:
        return super().options_of(group) | {"adapt": group.adapt, "step": int(self.correct)}


class Adafactor(Optimizer):
    """Adam's second moments from the means of rows and columns, no first moments (T5).

    A matrix [R, C] costs R + C numbers. The rate is relative to the size of a tensor, at least `floor`,
    unless relative=False; the update's root mean square is at most `threshold`; the mean forgets as 1 -
    step^-power.
    """

    kind = "adafactor"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        *,
        eps: float = 1e-30,
        floor: float = 1e-3,
        threshold: float = 1.0,
        power: float = 0.8,
        relative: bool = True,
        weight_decay: float = 0.0,
    ):
        super().__init__(
            params,
            lr,
            weight_decay=weight_decay,
            eps=eps,
            floor=floor,
            threshold=threshold,
            power=power,
            relative=relative,
        )

    def moment_shape(self, param: Tensor, name: str) -> tuple[int | Dim, ...]:
        """The shape of a parameter's state: rows and columns of a matrix, else the parameter's own."""
        if param.ndim < 2:
            return param.shape
        return param.shape[:-1] if name == "m" else param.shape[-1:]


class Adagrad(Optimizer):
    """p -= lr * g / (sqrt(sum of g^2) + eps), as for GloVe and ELMo.

    The sum begins with `start`; weight decay is added to the gradient.
    """

    kind = "adagrad"
    moments = ("v",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        *,
        eps: float = 1e-10,
        start: float = 0.0,
        weight_decay: float = 0.0,
        lazy: bool = False,
    ):
        if start < 0:
            raise ArgumentError(f"Adagrad: start must not be negative, got {start}")
        super().__init__(params, lr, weight_decay=weight_decay, lazy=lazy, eps=eps)
        if start:
            for s in self.states:
                s.v = ops.full(s.param.shape, start, moment_dtype(s.param), like=s.param)


class Adadelta(Optimizer):
    """Each element's own rate: p -= lr * g * RMS(updates before) / RMS(g) (Zeiler; Bahdanau's translation).

    The means forget by `rho`; weight decay is added to the gradient.
    """

    kind = "adadelta"

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        *,
        rho: float = 0.95,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        lazy: bool = False,
    ):
        super().__init__(params, lr, weight_decay=weight_decay, lazy=lazy, rho=rho, eps=eps)


KINDS = {k.__name__.lower(): k for k in (SGD, Adam, AdamW, BertAdam, LAMB, Adafactor, Adagrad, Adadelta)}


class Average:
    """The base of averages of parameters, which serve evaluation and the result of a training.

    Beside an optimiser:

        average = EMA(model.parameters(), decay=0.999)
        opt.step(); average.step()
        with average.averaged(): evaluate(model)
    """

    begun = True  # whether there is anything to average yet

    def __init__(self, params: Iterable[Tensor]):
        self.params = list(params)
        self.averages = [Tensor(ops.copy(p.detach()), dtype=moment_dtype(p)) for p in self.params]

    def step(self) -> None:
        """Takes the parameters of another step into the average."""
        raise NotImplementedError

    def watch(self, loss: float) -> None:
        """Receives the loss of each evaluation."""

    def apply(self) -> None:
        """Copies the averages to the parameters, once averaging has begun."""
        if self.begun:
            for p, a in zip(self.params, self.averages, strict=True):
                _core.assign(p, a)

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """Inside, the parameters hold the averages."""
        current = [ops.copy(p.detach()) for p in self.params] if self.begun else []
        try:
            self.apply()
            yield
        finally:
            for p, c in zip(self.params, current):
                _core.assign(p, c)

    def state_dict(self) -> dict[str, Any]:
        """The averaged tensors by name."""
        return {k: np.array(v.numpy()) if isinstance(v, Tensor) else v for k, v in self.live_state().items()}

    def live_state(self) -> dict[str, Any]:
        """The averages themselves, which change with the next step."""
        return {str(i): a for i, a in enumerate(self.averages)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what state_dict returned."""
        if set(state) != set(self.live_state()):
            raise ArgumentError(
                f"{type(self).__name__}: the state is not that of {len(self.averages)} parameters; it "
                f"has {', '.join(state)}"
            )
        for i, a in enumerate(self.averages):
            _core.assign(a, state[str(i)])


class EMA(Average):
    """An exponential moving average: a = decay * a + (1 - decay) * p."""

    def __init__(self, params: Iterable[Tensor], decay: float = 0.999):
        super().__init__(params)
        self.decay = decay

    def step(self) -> None:
        """Moves the average towards the parameters."""
        _core.ema_all(self.averages, self.params, self.decay)


class TriggeredMean(Average):
    """The mean over all steps since evaluations got worse; none before. With SGD this is NT-ASGD (AWD-LSTM).

    It begins after a loss above the lowest of those that were found at least `patience`
    evaluations before it.
    """

    def __init__(self, params: Iterable[Tensor], patience: int = 5):
        if patience < 1:
            raise ArgumentError(f"TriggeredMean: patience must be at least 1, got {patience}")
        super().__init__(params)
        self.patience = patience
        self.losses: list[float] = []
        self.triggered = False
        self.count = 0  # steps in the mean

    @property
    def begun(self) -> bool:  # type: ignore[override]
        return self.count > 0

    def step(self) -> None:
        """Takes the parameters into the mean, once it has begun."""
        if self.triggered:
            self.count += 1
            _core.ema_all(self.averages, self.params, 1 - 1 / self.count)

    def watch(self, loss: float) -> None:
        before = self.losses[: -self.patience]
        self.triggered = self.triggered or (bool(before) and loss > min(before))
        self.losses.append(loss)

    def live_state(self) -> dict[str, Any]:
        counted = {
            "count": np.array(self.count if self.triggered else -1),
            "losses": np.array(self.losses, np.float64),
        }
        return super().live_state() | counted

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what state_dict returned."""
        super().load_state_dict(state)
        count = int(np.asarray(state["count"]))
        self.triggered, self.count = count >= 0, max(0, count)
        self.losses = np.asarray(state["losses"]).tolist()
