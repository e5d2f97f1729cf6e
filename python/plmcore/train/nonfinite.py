"""Where a loss or a gradient stopped being a number."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from plmcore import nn
from plmcore._core import Tensor
from plmcore.runtime.autograd import no_grad


class NonFiniteError(ArithmeticError):
    """A loss or gradient is infinite or not a number; the message names the first tensor that is."""


class DivergedError(ArithmeticError):
    """A run has ended with a loss far above the one it began with."""


ADVICE = (
    "take a lower learning rate (optim.lr), more warm-up (schedule.warmup) or a lower clip_norm "
    "(optim.clip_norm)"
)
WORST_GUESS = 50.0  # nats per token or example: no vocabulary has a guess as bad as that


def diverged(first: float | None, loss: float | None, squares: bool) -> bool:
    """Whether a loss is that of a run which diverged from the first one.

    Mean squares have any size, and vary more from batch to batch.
    """
    if first is None or loss is None:
        return False
    return loss > 1000 * first if squares else loss > max(WORST_GUESS, 10 * first)


def first_bad(tensors: Iterable[tuple[str, Tensor | None]]) -> str | None:
    """The name of the first tensor with a value that is not finite, and how many it has."""
    for name, t in tensors:
        if t is None:
            continue
        array = (t.values if t.is_row_sparse else t).numpy()
        bad = array.size - int(np.count_nonzero(np.isfinite(array.astype(np.float32, copy=False))))
        if bad:
            return f"{name} ({bad} of {array.size} values)"
    return None


def explain(model: nn.Module, forward: Callable[[], Any]) -> str:
    """What went wrong first: a parameter, else the output of a module
    when `forward` runs again, else a gradient.
    """
    if name := first_bad(model.named_parameters()):
        return f"the parameter {name} is not finite"
    with no_grad(), watched(model) as found:
        forward()
    if found:
        return f"the output of {found[0]} is not finite"
    if name := first_bad((n, p.grad) for n, p in model.named_parameters()):
        return f"the gradient of {name} is not finite"
    return (
        "all parameters, outputs and gradients are finite: the sum of the loss or of the gradients' "
        "squares overflowed"
    )


@contextlib.contextmanager
def watched(model: nn.Module) -> Iterator[list[str]]:
    """Inside, modules whose output is not finite are noted, inner ones first: the first is where it began."""
    found: list[str] = []
    kinds = {}
    for name, module in model.named_modules():
        if callable(module) and id(module) not in kinds:
            kinds[id(module)] = module, type(module)
            module.__class__ = _noting(type(module), name or type(module).__name__, found)
    try:
        yield found
    finally:
        for module, kind in kinds.values():
            module.__class__ = kind


def _noting(kind: Any, name: str, found: list[str]) -> type:
    """A kind for one module: the others of its kind may be at work in other threads."""

    class Noting(kind):  # type: ignore[misc]  # a class that is known at run time
        def __call__(self, *args: Any, **inputs: Any) -> Any:
            result = super().__call__(*args, **inputs)
            if (
                isinstance(result, Tensor)
                and "float" in result.dtype
                and (bad := first_bad([(name, result)]))
            ):
                found.append(bad)
            return result

    Noting.__name__ = Noting.__qualname__ = kind.__name__
    return Noting
