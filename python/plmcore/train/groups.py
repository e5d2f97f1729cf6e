"""Parameter groups: what is not decayed, rows that stay short, and rates that fall from the head down to the
embeddings.
"""

from __future__ import annotations

import re
from typing import Any

from plmcore import nn
from plmcore._core import ArgumentError

UNDECAYED = ("bias", "gamma", "beta")  # by their last name
LAYER = re.compile(r"(?:^|\.)(?:blocks|groups)\.(\d+)\.")


def decayed(model: nn.Module) -> set[str]:
    """The names of the parameters that decay: matrices do; biases, the gains of norms, and what a module's
    own UNDECAYED lists do not.
    """
    vectors = {
        f"{path}.{name}".lstrip(".")
        for path, module in model.named_modules()
        for name in getattr(module, "UNDECAYED", ())
    }
    return {
        name
        for name, p in model.named_parameters()
        if p.ndim >= 2 and name.rpartition(".")[2] not in UNDECAYED and name not in vectors
    }


def bounded(model: nn.Module) -> dict[str, float]:
    """The most that a row of a parameter may measure, by its name: what modules list in `max_norms`."""
    return {
        f"{path}.{name}".lstrip("."): most
        for path, module in model.named_modules()
        for name, most in getattr(module, "max_norms", {}).items()
    }


def parameter_groups(
    model: nn.Module, *, lr: float, weight_decay: float, layer_decay: float = 1.0
) -> list[dict[str, Any]]:
    """Groups for an optimiser, frozen parameters left out.

    A layer's rate is `layer_decay` times that of the layer above it. What does not decay is not adapted by
    LAMB either, as ALBERT was trained.
    """
    if not 0 < layer_decay <= 1:
        raise ArgumentError(f"layer_decay must be more than 0 and at most 1, got {layer_decay}")
    top = (
        max((d for d in map(layer_of, (n for n, _ in model.named_parameters())) if d is not None), default=0)
        + 1
    )
    decaying, norms = decayed(model), bounded(model)
    groups: dict[tuple[int, bool, float | None], list[nn.Parameter]] = {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            groups.setdefault((depth(name, top), name in decaying, norms.get(name)), []).append(p)
    return [
        dict(
            params=params,
            lr=lr * layer_decay ** (top - d),
            weight_decay=weight_decay if decays else 0.0,
            adapt=decays,
            max_norm=most,
        )
        for (d, decays, most), params in groups.items()
    ]


def layer_of(name: str) -> int | None:
    """The number of its layer, from 1; None outside the layers."""
    found = LAYER.search(name)
    return int(found[1]) + 1 if found else None


def depth(name: str, top: int) -> int:
    """0 for embeddings, then the layers, `top` for what comes after them."""
    layer = layer_of(name)
    if layer is not None:
        return layer
    below = any(part in name for part in ("embeddings.", "tokens.", "shared.", "positions."))
    return 0 if below else top
