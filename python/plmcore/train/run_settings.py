"""The settings of a pre-training run: the recipe's, changed by a config.toml, by a command and by single assignments."""

from __future__ import annotations

import dataclasses
import inspect
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from plmcore import models, objectives
from plmcore._core import ArgumentError
from plmcore.train import making, recipes, settings, supervised
from plmcore.train.settings import SettingError, Settings

HARMLESS = (
    "train.save_every",
    "train.keep",
    "train.log_every",
    "train.tensorboard",
    "data.text",
    "data.target",
)  # may differ when a run goes on
EXAMPLE = "plmcore pretrain gpt2 --size tiny --text FILE --out DIR"


def defaults_of(family: str, size: str, steps: int | None = None) -> Settings:
    """All settings there are, those without a value as None."""
    values = recipes.defaults(family, size, steps)
    fields = {f.name: None for f in dataclasses.fields(config_class(values["run"]["family"]))}
    values["model"] = {k: None for k in fields if k not in ("extra", "architectures", "model_type")} | values["model"]
    values["objective"] = {k: None for k in objective_settings(values["objective"]["name"])} | values["objective"]
    values["optim"] = making.optimizer_options() | values["optim"]
    for option in ("width", "power", "hold", "cut", "ratio", "every", "start", "slope", "rise"):
        values["schedule"].setdefault(option, None)
    return values


def config_class(family: str) -> type:
    module = models.family(family)
    return getattr(module, "CONFIGS", {}).get(family, module.CONFIG)


def objective_settings(name: str) -> set[str]:
    """The names of an objective's settings, those that it hands on to its masks included."""
    from plmcore.objectives.masked import Masking

    kind = objectives.__getattr__(objectives._CLASSES[name][1])
    found: set[str] = set()
    for cls in (*kind.__mro__, Masking):
        parameters = inspect.signature(cls.__init__).parameters.values() if "__init__" in vars(cls) else ()
        found |= {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
        if parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return found - {"self", "corpus", "source", "target", "tokenizer", "target_tokenizer", "length", "spans"}


def new(given: Settings, config: str | os.PathLike[str] | None, changes: Sequence[str]) -> Settings:
    """The recipe's, changed by the config, by what was given, and by single settings, in this order."""
    layers = settings.layers(given, config, changes)

    def first(section: str, key: str, default: Any = None) -> Any:
        found = [t[section][key] for t in layers if t.get(section, {}).get(key) is not None]
        return found[-1] if found else default

    family = first("run", "family")
    if family is None:
        raise ArgumentError(f"pretrain needs a family, one of {', '.join(recipes.RECIPES)}: {EXAMPLE}")
    family = recipes.ALIASES.get(family, family)
    size = first("run", "size", "tiny")
    known = defaults_of(family, size, first("train", "steps"))
    known["run"]["family"] = family
    if first("mixture", "tables") and "mixture" not in known:
        able = [name for name, recipe in recipes.RECIPES.items() if recipe.mixes]
        raise ArgumentError(f"supervised tasks can be mixed with the text of {' and '.join(able)}, not of {family}")
    making.own_options(known, layers)
    result = settings.merged(known, *layers)
    result["run"]["family"] = family
    if result["train"]["result"] not in making.RESULTS:
        raise SettingError(f"train.result must be {' or '.join(making.RESULTS)}, got {result['train']['result']!r}")
    if "mixture" in result:
        supervised.check(result["mixture"])
    if not result["data"]["text"]:
        raise ArgumentError(f"pretrain needs text: {EXAMPLE}")
    translates = result["objective"]["name"] == "translation"
    if translates != bool(result["data"]["target"]):
        raise ArgumentError(
            "the Transformer learns to translate: it needs --target with the translations of --text, line by line"
            if translates
            else f"--target is for translation, and {family} learns from text alone"
        )
    return result


def resumed(
    begun: pathlib.Path, given: Settings, config: str | os.PathLike[str] | None, changes: Sequence[str]
) -> Settings:
    """Those of the run, with what settings.resumed lets change."""
    layers = settings.layers(given, config, changes)
    for table in (layer["run"] for layer in layers if "family" in layer.get("run", {})):
        table["family"] = recipes.ALIASES.get(table["family"], table["family"])

    def defaults(stored: Settings) -> Settings:
        run = stored["run"]
        return defaults_of(run["family"], run["size"], stored.get("train", {}).get("steps"))

    return settings.resumed(begun, ("family", "size"), defaults, layers, HARMLESS)
