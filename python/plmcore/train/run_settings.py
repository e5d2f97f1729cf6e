"""The settings of a pre-training run: the recipe's, changed by a config.toml,
by a command and by single assignments.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from plmcore import models, objectives
from plmcore._core import ArgumentError
from plmcore.files.text import check_errors
from plmcore.models import labels
from plmcore.train import extending, making, recipes, run, settings, supervised, trainers
from plmcore.train.settings import SettingError, Settings

FILES = ("data.text", "data.target")  # may be elsewhere when a run goes on
EXAMPLE = "plmcore pretrain gpt2 --size tiny --text FILE --out DIR"


def defaults_of(family: str, size: str, steps: int | None = None, objective: str | None = None) -> Settings:
    """All settings there are, those without a value as None.

    Another `objective` than the recipe's has what it takes of its settings.
    """
    values = recipes.defaults(family, size, steps)
    fields = {f.name: None for f in dataclasses.fields(models.config_class(values["run"]["family"]))}
    values["model"] = {k: None for k in fields if k not in ("extra", "architectures", "model_type")} | values[
        "model"
    ]
    usual = values["objective"]
    if objective is not None and objective not in objectives._CLASSES:
        raise SettingError(
            f"objective.name must be one of {', '.join(objectives._CLASSES)}, got {objective!r}"
        )
    takes = objective_settings(objective or usual["name"])
    values["objective"] = {k: usual.get(k) for k in takes} | {"name": objective or usual["name"]}
    values["optim"] = making.optimizer_options() | values["optim"]
    values["schedule"] = dict.fromkeys(making.CURVE) | values["schedule"]
    return values


def objective_settings(name: str) -> dict[str, str]:
    """The names and kinds of an objective's settings, those that it hands on to its masks included."""
    own = ("corpus", "source", "target", "tokenizer", "target_tokenizer", "length", "spans")
    return {key: kind for key, kind in objectives.arguments_of(name).items() if key not in own}


def kinds_of(objective: str) -> dict[str, str]:
    """Of settings without a default, as settings.merged takes them."""
    found = {
        f"objective.{key}": kind
        for key, kind in objective_settings(objective).items()
        if isinstance(kind, str)
    }
    return making.KINDS | making.option_kinds() | found


def check_config(stored: Settings, family: str, size: str) -> None:
    """A whole config.toml has the widths of its size and the model of its family: under other names they
    would not change.
    """
    for key, now in (("family", family), ("size", size)):
        before = stored.get("run", {}).get(key)
        if before is not None and recipes.name_of(before) != now and stored.get("model"):
            raise SettingError(
                f"run.{key} is {now!r}, and the settings of the config are those of {before!r}: begin "
                f"without it"
            )


def new(given: Settings, config: str | os.PathLike[str] | None, changes: Sequence[str]) -> Settings:
    """The recipe's, changed by the config, by what was given, and by single settings, in this order."""
    layers = settings.layers(given, config, changes)

    def first(section: str, key: str, default: Any = None) -> Any:
        found = [t[section][key] for t in layers if t.get(section, {}).get(key) is not None]
        return found[-1] if found else default

    family: Any = first("run", "family")
    if family is None:
        raise ArgumentError(f"pretrain needs a family, one of {', '.join(trainers.names())}: {EXAMPLE}")
    size = first("run", "size", "tiny")
    objective = first("objective", "name")
    for name, value in (("run.family", family), ("run.size", size), ("objective.name", objective)):
        if value is not None:
            settings.fitted(name, value, "")
    if (steps := first("train", "steps")) is not None:
        settings.fitted("train.steps", steps, 1)
    family = recipes.name_of(family)
    if family not in models.FAMILIES:
        raise ArgumentError(f"there is no family {family!r}; one of {', '.join(trainers.names())}")
    check_config(layers[0], family, size)
    known = defaults_of(family, size, first("train", "steps"), objective)
    known["run"]["family"] = family
    if first("mixture", "tables") and "mixture" not in known:
        able = [name for name in recipes.names() if recipes.recipe(name).mixes]
        raise ArgumentError(
            f"supervised tasks can be mixed with the text of {' and '.join(able)}, not of {family}"
        )
    making.own_options(known, layers)
    result = settings.merged(known, *layers, kinds=kinds_of(known["objective"]["name"]))
    result["run"]["family"] = family
    run.check_result(result["train"])
    check_errors(result["data"]["errors"])
    if "mixture" in result:
        supervised.check(result["mixture"])
    if not result["data"]["text"]:
        raise ArgumentError(f"pretrain needs text: {EXAMPLE}")
    recipes.recipe(family).derive(result)
    check_objective(result)
    translates = result["objective"]["name"] == "translation"
    if translates != bool(result["data"]["target"]):
        raise ArgumentError(
            "the Transformer learns to translate: it needs --target with the translations of --text, "
            "line by line"
            if translates
            else f"--target is for translation, and {family} learns from text alone"
        )
    return result


def check_objective(chosen: Settings) -> None:
    """The objective's labels must be of a kind that the head takes: others would be learnt from the wrong
    place, or not at all.
    """
    family, head, objective = chosen["run"]["family"], chosen["model"]["head"], chosen["objective"]["name"]
    heads = models.family(family).HEADS
    if head not in heads:
        raise SettingError(f"model.head must be one of {', '.join(heads)}, got {head!r}")
    given = {
        name: objectives.labels_of(name) for name in objectives.NAMES if name not in objectives.WITHOUT_TEXT
    }
    kind = given.get(objective)
    if kind not in labels.taken(heads[head]):
        fits = [name for name, other in heads.items() if kind in labels.taken(other)]
        taken = [name for name, other in given.items() if other in labels.taken(heads[head])]
        hint = f"; set model.head={fits[0]}" if fits else ""
        raise SettingError(
            f"objective.name={objective} is not for the head {head} of {family}, which learns from "
            f"{' or '.join(taken) or 'no text'}{hint}"
        )
    if kind == labels.NEXT and chosen["model"].get("is_decoder", True) is not True:
        raise SettingError(
            f"objective.name={objective} needs model.is_decoder=true: without it {family} sees what it "
            f"is to predict"
        )
    if chosen["objective"].get("positions") and not getattr(heads[head], "PLACED", False):
        raise SettingError(
            f"objective.positions=true gives decoder_position_ids, which no decoder of {family} takes: "
            f"leave it"
        )
    if chosen["train"].get("mem_len"):
        streams, batch = chosen["objective"].get("streams"), chosen["data"]["batch"]
        if streams != batch or chosen["objective"].get("stride") is None:
            raise SettingError(
                f"train.mem_len needs rows that go on from batch to batch: objective.streams={batch} "
                f"like data.batch, and objective.stride; "
                f"got {streams} and {chosen['objective'].get('stride')}; or train.mem_len=0"
            )
    if chosen["train"].get("carry"):
        streams, batch = chosen["objective"].get("streams"), chosen["data"]["batch"]
        # a token that is predicted is read by the next window, unless labels have been moved
        stride = chosen["data"]["length"] - 1 if kind == labels.NEXT else None
        if streams != batch or chosen["objective"].get("stride") != stride:
            more = "" if stride is None else f", and objective.stride={stride}, data.length - 1"
            raise SettingError(
                f"train.carry needs rows that go on from batch to batch: objective.streams={batch} like "
                f"data.batch{more}; got {streams} and {chosen['objective'].get('stride')}; or "
                "train.carry=false"
            )
    if chosen["train"].get("vary") and not chosen["train"].get("carry"):
        raise SettingError("train.vary draws the lengths of windows that go on: it needs train.carry=true")
    smoothing = chosen["train"]["label_smoothing"]
    if not 0 <= smoothing <= 1:
        raise SettingError(f"train.label_smoothing must be from 0 to 1, got {smoothing}")


def resumed(
    begun: pathlib.Path, given: Settings, config: str | os.PathLike[str] | None, changes: Sequence[str]
) -> Settings:
    """Those of the run, with what settings.resumed lets change; more steps make it longer."""
    layers = settings.layers(given, config, changes)
    for table in (layer["run"] for layer in layers if "family" in layer.get("run", {})):
        table["family"] = recipes.name_of(table["family"])

    def defaults(stored: Settings) -> Settings:
        table = stored["run"]
        steps, objective = stored.get("train", {}).get("steps"), stored.get("objective", {}).get("name")
        return defaults_of(table["family"], table["size"], steps, objective)

    return extending.resumed(begun, ("family", "size"), defaults, layers, FILES, making.KINDS)
