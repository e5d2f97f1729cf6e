"""Tracing: a Python function of tensors as a Program that runs at other sizes, without Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from plmcore._core import Dim, Program, Tensor, Tracer
from plmcore.nn.state import State
from plmcore.runtime.kinds import checked

__all__ = ["Program", "Spec", "spec", "trace"]


@dataclass(frozen=True)
class Spec:
    """An input of a traced function: a dtype, and sizes that are numbers or symbols."""

    dtype: str
    shape: tuple[int | Dim, ...]


@checked
def spec(dtype: str, *shape: int | str | Dim) -> Spec:
    """spec("float32", "B", "T", 768): the names stand for sizes that the program learns when it runs."""
    named = (Dim(n) if isinstance(n, str) and not n.isdigit() else n for n in shape)
    return Spec(dtype, tuple(n if isinstance(n, Dim) else int(n) for n in named))


@checked
def trace(fn: Callable[..., Any], /, weights: Mapping[str, Tensor] | None = None, **inputs: Spec) -> Program:
    """Records the ops that fn(**inputs) calls as a Program. Nothing is computed.

    fn returns a tensor, a tuple of them, or a dict (a model's Output) of them by name. The other tensors it
    uses become constants of the program: under the names of `weights`, or those of a Module's parameters when
    fn is one; the program runs on their device. Gradients are part of the program when fn computes them with
    plm.grad.
    """
    if isinstance(weights, Spec):  # an input of that name
        inputs, weights = {"weights": weights, **inputs}, None
    if weights is None:
        weights = dict(getattr(fn, "named_parameters", dict)())
    device = next((t.device for t in weights.values()), "cpu")
    tracer = Tracer()
    try:
        result = fn(**{name: tracer.input(name, s.shape, s.dtype, device) for name, s in inputs.items()})
        names, outputs = _outputs(result)
        for name, tensor in weights.items():
            tracer.name_constant(tensor, name)
        return tracer.finish(names, outputs)
    finally:
        tracer.stop()


def _outputs(result: Any) -> tuple[list[str], list[Tensor]]:
    if isinstance(result, Tensor):
        return [], [result]
    if isinstance(result, Mapping):
        named: dict[str, Tensor] = {}
        for name, value in result.items():  # a tuple's tensors are name.0, name.1, ...; a state has names
            if isinstance(value, Tensor):
                named[name] = value
                continue
            parts = value.tensors() if isinstance(value, State) else dict(enumerate(value))
            named |= {f"{name}.{i}": v for i, v in parts.items()}
        return list(named), list(named.values())
    return [], list(result)
