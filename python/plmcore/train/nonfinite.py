"""Where a loss or a gradient stopped being a number."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from plmcore import nn
from plmcore._core import Tensor
from plmcore.autograd import no_grad


class NonFiniteError(ArithmeticError):
    """A loss or gradient is infinite or not a number; the message names the first tensor that is."""


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
    """What went wrong first: a parameter, else the output of a module when `forward` runs again, else a gradient."""
    if name := first_bad(model.named_parameters()):
        return f"the parameter {name} is not finite"
    with no_grad(), watched(model) as found:
        forward()
    if found:
        return f"the output of {found[0]} is not finite"
    if name := first_bad((n, p.grad) for n, p in model.named_parameters()):
        return f"the gradient of {name} is not finite"
    return (
        "all parameters, outputs and gradients are finite: the sum of the loss or of the gradients' squares overflowed"
    )


@contextlib.contextmanager
def watched(model: nn.Module) -> Iterator[list[str]]:
    """Inside, modules whose output is not finite are noted, inner ones first: the first is where it began."""
    found: list[str] = []
    names = {id(module): name or type(model).__name__ for name, module in model.named_modules()}
    kinds = {type(module) for module in model.modules() if hasattr(type(module), "__call__")}
    originals = {kind: kind.__dict__["__call__"] for kind in kinds if "__call__" in kind.__dict__}

    def noting(original: Callable) -> Callable:
        def call(self: nn.Module, *args: Any, **inputs: Any) -> Any:
            result = original(self, *args, **inputs)
            if isinstance(result, Tensor) and "float" in result.dtype:
                name = first_bad([(names.get(id(self), type(self).__name__), result)])
                found.extend([name] if name else [])
            return result

        return call

    for kind, original in originals.items():
        kind.__call__ = noting(original)
    try:
        yield found
    finally:
        for kind, original in originals.items():
            kind.__call__ = original
