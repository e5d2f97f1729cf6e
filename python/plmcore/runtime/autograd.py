"""Which ops are recorded, and gradients beyond Tensor.backward()."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from typing import Any, overload

from plmcore import _core
from plmcore._core import Tensor
from plmcore.runtime.kinds import checked

STORED = ("float32", "bfloat16")  # dtypes of activations that the tape keeps


class _GradMode(threading.local, ContextDecorator):
    _on: bool

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_core.set_grad_enabled(self._on))

    def __exit__(self, *_: object) -> None:
        _core.set_grad_enabled(self._before.pop())


class no_grad(_GradMode):  # noqa: N801  used as a statement
    """Does not record ops on this thread. Use `with no_grad(): ...`, or `@no_grad()` on a function."""

    _on = False


class enable_grad(_GradMode):
    """Records ops on this thread again, inside no_grad."""

    _on = True


class stored_activations(threading.local, ContextDecorator):  # noqa: N801  used as a statement
    """Stores the activations of this thread's ops in a dtype: "bfloat16" for half the memory, or "float32"
    without a change.

    The forward pass computes and gives float32, the same bits as without.
    Gradients are computed in float32 from the rounded activations;
    parameters, statistics of norms and attention, and the logits of a loss are not rounded.
    """

    def __init__(self, dtype: str) -> None:
        if dtype not in STORED:
            raise _core.ArgumentError(
                f"stored_activations: the dtype must be {' or '.join(STORED)}, got {dtype!r}"
            )
        self.dtype = dtype
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_core.set_rounds_activations(self.dtype == "bfloat16"))

    def __exit__(self, *_: object) -> None:
        _core.set_rounds_activations(self._before.pop())


@overload
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor,
    seeds: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool = False,
) -> Tensor | None: ...
@overload
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor],
    seeds: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool = False,
) -> tuple[Tensor | None, ...]: ...
@checked
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    seeds: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool = False,
) -> Tensor | None | tuple[Tensor | None, ...]:
    """Returns the gradients of `outputs` with respect to `inputs`, which need not be leaves.

    No .grad changes. The gradient of an unrelated input is None.

    `seeds` are the gradients of the outputs, 1 for an output with one element. Returns a tensor for a tensor,
    a tuple for a list.
    """
    single = isinstance(inputs, Tensor)
    found = _core.grad(
        _listed(outputs), _listed(inputs), () if seeds is None else _listed(seeds), retain_graph
    )
    return found[0] if single else found


@checked
def recompute(fn: Callable[..., Any], *inputs: Any, params: Sequence[Tensor] | None = None) -> Any:
    """Calls fn(*inputs) and keeps only the inputs.

    The backward pass computes fn again, with the same random numbers.

    `params` are the trainable tensors that fn uses beside its inputs; of a Module they are its parameters.
    """
    if params is None:
        params = list(getattr(fn, "parameters", list)())
    places = [i for i, x in enumerate(inputs) if isinstance(x, Tensor)]
    single = False

    def body(tensors: tuple[Tensor, ...]) -> Sequence[Tensor]:
        nonlocal single
        args = list(inputs)
        for i, t in zip(places, tensors):
            args[i] = t
        result = fn(*args)
        single = isinstance(result, Tensor)
        return [result] if single else result

    # The tensors of `inputs` reach the body as arguments; here they would stay alive twice.
    tensors = [inputs[i] for i in places]
    inputs = tuple(None if isinstance(x, Tensor) else x for x in inputs)
    results = _core.recompute(body, tensors, params)
    return results[0] if single else results


@checked
def stop_gradient(x: Tensor) -> Tensor:
    """Returns x as a constant: the same values, without a gradient."""
    return Tensor(x).detach()


def _listed(x: Any) -> Sequence[Any]:
    return [x] if isinstance(x, Tensor) else x
