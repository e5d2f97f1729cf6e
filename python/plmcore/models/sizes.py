"""What a config would take, told before anything is made:
a damaged or hostile config.json asks for more than there is.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

from plmcore import nn
from plmcore._core import ArgumentError, OutOfMemoryError, available_memory
from plmcore.models.config import Config

Kind = Callable[[Any], nn.Module]  # the class of a head


def count(config: Config, kind: Kind, buffers: bool = False) -> int:
    """The parameters, with `buffers` those too; shared ones once.

    Nothing is made but a few layers without weights.

    From two layers on it is linear in each number of them (the first and the last may have other widths), so
    that models with two and with three tell it.
    """
    kinds = [f.name for f in dataclasses.fields(config) if _counts_layers(config, f.name)]
    try:
        corners = {
            corner: _small(config.replace(**dict(zip(kinds, corner))), kind, buffers)
            for corner in itertools.product(
                *([n] if n < 3 else [2, 3] for n in (getattr(config, k) for k in kinds))
            )
        }
    except ArgumentError:  # a rule binds the numbers to each other
        return _small(config, kind, buffers)
    total = 0
    for corner, size in corners.items():
        numbers = ((c, getattr(config, k)) for c, k in zip(corner, kinds))
        total += size * math.prod(n - 2 if c == 3 else 3 - n for c, n in numbers if n >= 3)
    return total


def check_memory(config: Config, kind: Kind, there: int = 0) -> None:
    """OutOfMemoryError where the weights in float32, but for `there` of them,
    are more than the system can still give.
    """
    wanted, left = 4 * (count(config, kind, buffers=True) - there), available_memory()
    if wanted > left:
        raise OutOfMemoryError(
            f"{config.model_type} has {count(config, kind):,} parameters by its config: "
            f"they take {wanted:,} bytes, and the system can still give {left:,}; make it smaller"
        )


def _counts_layers(config: Config, name: str) -> bool:
    return (
        type(getattr(config, name)) is int
        and ("layer" in name or "group" in name)
        and not name.startswith("layer_")
    )


def _small(config: Config, kind: Kind, buffers: bool) -> int:
    with nn.init.skipped():
        model = kind(config)
    return model.num_parameters() + (sum(b.size for _, b in model.named_buffers()) if buffers else 0)
