"""Optimiser and schedule from the tables of a config.toml."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from plmcore import nn, optim
from plmcore.train import groups, schedules
from plmcore.train.settings import SettingError


def optimizer(model: nn.Module, table: Mapping[str, Any]) -> optim.Optimizer:
    kind = optim.KINDS.get(table["kind"])
    if kind is None:
        raise SettingError(f"optim.kind must be one of {', '.join(optim.KINDS)}, got {table['kind']!r}")
    takes = inspect.signature(kind.__init__).parameters
    options = {k: v for k, v in table.items() if k in takes and k not in ("lr", "weight_decay") and v is not None}
    if kind is optim.Adafactor:
        options.pop("eps", None)
    params = groups.parameter_groups(
        model, lr=table["lr"], weight_decay=table["weight_decay"], layer_decay=table["layer_decay"]
    )
    return kind(params, lr=table["lr"], **options)


def schedule(table: Mapping[str, Any], steps: int) -> schedules.Schedule:
    table = {k: v for k, v in table.items() if v is not None}
    kind = schedules.KINDS.get(table.pop("kind"))
    if kind is None:
        raise SettingError(f"schedule.kind must be one of {', '.join(schedules.KINDS)}")
    takes = inspect.signature(kind).parameters
    table["steps"] = steps
    return kind(**{k: v for k, v in table.items() if k in takes})
