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

    It is linear in each number of layers, so that models with one and with two tell it.
    """
    kinds = [f.name for f in dataclasses.fields(config) if _counts_layers(config, f.name)]
    try:
        corners = {
            corner: _small(config.replace(**dict(zip(kinds, corner))), kind, buffers)
            for corner in itertools.product(
                *([n] if n < 2 else [1, 2] for n in (getattr(config, k) for k in kinds))
            )
        }
    except ArgumentError:  # a rule binds the numbers to each other
        return _small(config, kind, buffers)
    total = 0
    for corner, size in corners.items():
        numbers = ((c, getattr(config, k)) for c, k in zip(corner, kinds))
        total += size * math.prod(n - 1 if c == 2 else 2 - n for c, n in numbers if n >= 2)
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
