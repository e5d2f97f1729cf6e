"""Less memory for more time: blocks keep their input alone,
and compute the inside again in the backward pass.
"""

from __future__ import annotations

import functools
from typing import Any

from plmcore import nn
from plmcore._core import grad_enabled
from plmcore.models import seq2seq
from plmcore.runtime.autograd import recompute


def recompute_blocks(model: nn.Module) -> nn.Module:
    """The same model, with the same names of parameters and the same results.

    Blocks that look at an encoder stay as they are.
    """
    for module in list(model.modules()):
        blocks = getattr(module, "blocks", None)
        if isinstance(blocks, nn.ModuleList):
            for block in blocks:
                kind: Any = type(block)
                block.__class__ = _recomputed(kind)
    return model


@functools.cache
def _recomputed(kind: Any) -> Any:
    if getattr(kind, "recomputes", False):
        return kind

    class Recomputed(kind):  # type: ignore[misc]  # a class that is known at run time
        recomputes = True

        def __call__(self, *args: Any, **inputs: Any) -> Any:
            forward = functools.partial(super().__call__, **inputs)
            # What the encoder gave is inside the source: recompute would take it for a constant.
            if not self.training or not grad_enabled() or any(isinstance(a, seq2seq.Source) for a in args):
                return forward(*args)
            return recompute(forward, *args, params=self.parameters())

    Recomputed.__name__ = Recomputed.__qualname__ = kind.__name__
    return Recomputed
