"""The states of several recurrent layers as one, and those of sentences that are read batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plmcore import nn
from plmcore._core import ShapeError, Tensor, ops


def split_state(state: Any, B: Any, n: int) -> list[nn.RecurrentState | None]:
    """Of each layer and direction."""
    if state is None:
        return [None] * n
    state = state if isinstance(state, nn.RecurrentState) else nn.RecurrentState(*state)
    state.check_batch(B)
    if state.c is None or state.h.shape[0] != n:
        raise ShapeError(
            f"the state must have h and c, each [{n}, batch, width], got h {list(state.h.shape)}"
        )
    return [nn.RecurrentState(ops.narrow(state.h, i, 1), ops.narrow(state.c, i, 1)) for i in range(n)]


def joined_state(states: Sequence[nn.RecurrentState]) -> nn.RecurrentState:
    h, c = (ops.concat([s.tensors()[name] for s in states], 0) for name in ("h", "c"))
    return nn.RecurrentState(h, c)


def rows_of(state: nn.RecurrentState | None, B: int) -> nn.RecurrentState | None:
    """Of the first B sentences; zeros for those that had none."""
    if state is None:
        return None
    return state.rebuilt({k: resized(t, B) for k, t in state.tensors().items()})


def resized(t: Tensor, B: int) -> Tensor:
    n = int(t.shape[1])
    return ops.slice(t, 1, 0, B) if n >= B else ops.pad(t, [0, 0, 0], [0, B - n, 0])


def over(before: nn.RecurrentState | None, now: nn.RecurrentState | None) -> nn.RecurrentState | None:
    """`now`, and the rows before that have no later ones."""
    if before is None or now is None or int(before.h.shape[1]) <= int(now.h.shape[1]):
        return now
    pairs = zip(now.tensors().items(), before.tensors().values(), strict=True)
    return now.rebuilt(
        {k: ops.concat([t, ops.slice(b, 1, t.shape[1], b.shape[1])], 1) for (k, t), b in pairs}
    )
