"""The trainer of a run, with optimiser, schedule and average, from the tables of a config.toml."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from plmcore import _core, criteria, nn, optim
from plmcore._core import Tensor
from plmcore.train import batching, checkpoint, extending, groups, schedules, tensorboard
from plmcore.train.loop import Trainer
from plmcore.train.recomputing import recompute_blocks
from plmcore.train.run_directory import RunDirectory
from plmcore.train.settings import SettingError, Settings

# settings of optim that are not the optimiser's own
SHARED = ("kind", "lr", "weight_decay", "layer_decay", "clip_norm")
# options of single schedules
CURVE = ("width", "power", "hold", "cut", "ratio", "every", "start", "slope", "rise")
TRIGGERED = "triggered"
RESULTS = ("last", "best", "mean")
KINDS = {  # of settings without a default
    "data.ramp": "int",
    "train.steps": "int",
    "train.patience": "int",
    "train.save_every": "int",
    "train.evaluate_every": "int",
    "mixture.text_rate": "float",
    "adapt.unfreeze_every": "float",
    "task.stride": "int",
    "task.question_length": "int",
    "task.target_length": "int",
    **dict.fromkeys(("data.train", "data.dev", "data.test", "data.folder"), "str"),
}


def trainer(
    run: RunDirectory,
    chosen: Settings,
    model: nn.Module,
    batches: batching.Batches,
    *,
    criterion: criteria.Criterion,
    evaluate: Callable[[nn.Module], dict[str, float]] | None,
    callbacks: Sequence[Callable[[Trainer, Mapping[str, float]], None]],
    data: str,
    ends: Sequence[int] = (),
) -> Trainer:
    """At the run's last checkpoint, where there is one. `ends` are those that a longer run had before."""
    seed, options = chosen["run"]["seed"], chosen["train"]
    if options["recompute"]:
        recompute_blocks(model)
    if options["tensorboard"]:
        run.tensorboard = tensorboard.writer(run.path)
    made = Trainer(
        model,
        batching.Ahead(batches),
        optimizer(model, chosen["optim"]),
        steps=options["steps"],
        schedule=extending.schedule(lambda n: schedule(chosen["schedule"], n), ends, options["steps"]),
        ends=ends,
        seed=seed,
        criterion=criterion,
        clip_norm=chosen["optim"]["clip_norm"],
        nonfinite=options["nonfinite"],
        activations=options["activations"],
        average=average(model.parameters(), options, evaluate is not None),
        directory=run,
        save_every=options["save_every"],
        keep=options["keep"],
        log_every=options["log_every"],
        evaluate=evaluate,
        evaluate_every=options["evaluate_every"],
        patience=options["patience"],
        callbacks=callbacks,
        data=data,
    )
    saved = run.newest()
    if saved is not None:
        made.restore(saved)
        run.note(f"going on from step {saved.step}")
    else:
        run.forget_after(0)
    return made


def announce(run: RunDirectory, made: Trainer, what: str) -> None:
    """What is trained, once for a run, and what this session does of it."""
    if made.step == 0:
        run.say(f"{what}; {made.steps} steps")
    run.note(
        f"steps {made.step} to {made.steps}, {_core.num_threads()} threads, {_core.isa()}, {_core.blas()}"
    )


def choose_result(run: RunDirectory, table: Mapping[str, Any], trained: Trainer) -> None:
    """Gives the model the average of the parameters where there is one; else, as train.result says,
    leaves it as it is after the last step, or takes the kept checkpoint with the lowest loss,
    or the mean of all that are kept.
    """
    if trained.average is not None or table["result"] != "best" or trained.best is None:
        trained.check_converged()
    if trained.average is not None:
        trained.average.apply()
        return
    kept = checkpoint.steps_in(run.checkpoints)
    if table["result"] == "mean":
        last = checkpoint.due(kept)[-table["keep"] :]
        trained.model.load_state_dict(checkpoint.average(last))
        run.say(
            f"the result is the mean of steps {', '.join(str(checkpoint.step_of(path)) for path in last)}"
        )
    elif table["result"] == "best" and trained.best is not None:
        scored = [c for c in map(checkpoint.read, kept) if c.state["score"] is not None]
        best = min(scored, key=lambda c: c.state["score"])
        trained.model.load_state_dict(best.parts["weights"])
        run.say(f"the result is that of step {best.step}")


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
