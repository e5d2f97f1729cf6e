"""The trainer of a run, with optimiser, schedule and average, from the tables of a config.toml."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from plmcore import criteria, nn, optim
from plmcore._core import Tensor
from plmcore.train import batching, extending, groups, run, schedules
from plmcore.train.loop import Trainer
from plmcore.train.recomputing import recompute_blocks
from plmcore.train.settings import SettingError, Settings

# settings of optim that are not the optimiser's own
SHARED = ("kind", "lr", "weight_decay", "layer_decay", "clip_norm")
# options of single schedules
CURVE = ("width", "power", "hold", "cut", "ratio", "every", "start", "slope", "rise")
TRIGGERED = "triggered"
KINDS = {  # of settings without a default
    **run.KINDS,
    "data.ramp": "int",
    "mixture.text_rate": "float",
    "adapt.unfreeze_every": "float",
    "adapt.vocab": "int",
    "adapt.vectors": "str",
    "task.stride": "int",
    "task.question_length": "int",
    "task.target_length": "int",
    "train.most_warmup": "int",
    **dict.fromkeys(("data.train", "data.dev", "data.test", "data.folder", "data.unlabelled"), "str"),
}


def trainer(
    chosen: Settings,
    model: nn.Module,
    batches: batching.Batches,
    *,
    criterion: criteria.Criterion,
    options: Mapping[str, Any],
) -> Trainer:
    """`options` are those of the run: Run.options."""
    table = chosen["train"]
    if table["recompute"]:
        recompute_blocks(model)
    return Trainer(
        model,
        batching.Ahead(batches),
        optimizer(model, chosen["optim"]),
        schedule=extending.schedule(
            lambda n: schedule(chosen["schedule"], n), options["ends"], options["steps"]
        ),
        criterion=criterion,
        clip_norm=chosen["optim"]["clip_norm"],
        nonfinite=table["nonfinite"],
        activations=table["activations"],
        average=average(model.parameters(), table, options["evaluate"] is not None),
        **options,
    )


def optimizer_options() -> dict[str, None]:
    """What single optimisers take, as settings without a value: that of the optimiser holds then."""
    takes = [inspect.signature(kind.__init__).parameters for kind in optim.KINDS.values()]
    return {k: None for names in takes for k in names if k not in (*SHARED, "self", "params", "lazy")}


def own_options(known: Settings, layers: Sequence[Settings]) -> None:
    """Where the layers choose another optimiser or schedule than is usual, or than the first of them, a
    config.toml, has, the options of that are not for it.
    """
    for section, options in (("optim", optimizer_options()), ("schedule", dict.fromkeys(CURVE))):
        tables = [layer.get(section, {}) for layer in layers]
        usual = known[section]["kind"]
        chosen = [usual, *(table["kind"] for table in tables if "kind" in table)][-1]
        if chosen != tables[0].get("kind", usual):
            layers[0][section] = {k: v for k, v in tables[0].items() if k not in options}
        if chosen != usual:
            known[section] |= options


def option_kinds() -> dict[str, str]:
    """The kinds of options of optimisers and schedules, as settings.merged takes them."""
    takes: dict[str, list[Callable[..., Any]]] = {
        "optim": [kind.__init__ for kind in optim.KINDS.values()],
        "schedule": list(schedules.KINDS.values()),
    }
    return {
        f"{section}.{p.name}": p.annotation
        for section, functions in takes.items()
        for function in functions
        for p in inspect.signature(function).parameters.values()
    }


def optimizer(model: nn.Module, table: Mapping[str, Any]) -> optim.Optimizer:
    kind = optim.KINDS.get(table["kind"])
    if kind is None:
        raise SettingError(f"optim.kind must be one of {', '.join(optim.KINDS)}, got {table['kind']!r}")
    takes = inspect.signature(kind.__init__).parameters
    options = {k: v for k, v in table.items() if k not in SHARED and v is not None}
    if unknown := [k for k in options if k not in takes]:
        raise SettingError(f"optim.{unknown[0]} is no option of {table['kind']}")
    params = groups.parameter_groups(
        model, lr=table["lr"], weight_decay=table["weight_decay"], layer_decay=table["layer_decay"]
    )
    return kind(params, lr=table["lr"], **options)


def average(params: Iterable[Tensor], table: Mapping[str, Any], evaluates: bool) -> optim.Average | None:
    """Of the parameters, as train.average says: a decay, or "triggered"."""
    kind = table["average"]
    if kind is None:
        return None
    if kind == TRIGGERED:
        if not evaluates:
            raise SettingError(
                f"train.average={TRIGGERED} waits for evaluations, and nothing is held out for them"
            )
        return optim.TriggeredMean(params, table["trigger"])
    if isinstance(kind, bool) or not isinstance(kind, int | float) or not 0 <= kind < 1:
        raise SettingError(f"train.average must be a decay from 0 to below 1, or {TRIGGERED}, got {kind!r}")
    return optim.EMA(params, kind)


def schedule(table: Mapping[str, Any], steps: int) -> schedules.Schedule:
    table = {k: v for k, v in table.items() if v is not None}
    kind = schedules.KINDS.get(table.pop("kind"))
    if kind is None:
        raise SettingError(f"schedule.kind must be one of {', '.join(schedules.KINDS)}")
    takes = inspect.signature(kind).parameters
    if unknown := [k for k in table if k in CURVE and k not in takes]:
        raise SettingError(f"schedule.{unknown[0]} is no option of {kind.__name__}")
    table["steps"] = steps
    if missing := [k for k, p in takes.items() if p.default is p.empty and k not in table]:
        raise SettingError(f"schedule.kind={kind.__name__} needs schedule.{missing[0]}")
    return kind(**{k: v for k, v in table.items() if k in takes})
