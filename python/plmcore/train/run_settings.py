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
from plmcore.train import recipes, settings
from plmcore.train.settings import SettingError, Settings

HARMLESS = (
    "train.save_every",
    "train.keep",
    "train.log_every",
    "train.tensorboard",
    "data.text",
)  # may differ when a run goes on
EXAMPLE = "plmcore pretrain gpt2 --size tiny --text FILE --out DIR"


def defaults_of(family: str, size: str, steps: int | None = None) -> Settings:
    """All settings there are, those without a value as None."""
    values = recipes.defaults(family, size, steps)
    fields = {f.name: None for f in dataclasses.fields(config_class(values["run"]["family"]))}
    values["model"] = {k: None for k in fields if k not in ("extra", "architectures", "model_type")} | values["model"]
    values["objective"] = {k: None for k in objective_settings(values["objective"]["name"])} | values["objective"]
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
    stored = settings.read(pathlib.Path(config)) if config is not None else {}
    stored.get("data", {}).pop("digests", None)
    single: Settings = {}
    for text in changes:
        section, key, value = settings.parse(text)
        single.setdefault(section, {})[key] = value
    layers = [stored, _stated(given), single]

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
    result = settings.merged(known, *layers)
    result["run"]["family"] = family
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
    """Those of the run; what is given again must be the same, but for what changes no bit of the result."""
    stored = settings.read(begun)
    digests = stored.get("data", {}).pop("digests", None)
    run = stored.get("run", {})
    if not isinstance(run.get("family"), str) or not isinstance(run.get("size"), str):
        raise SettingError(f"'{begun}' must say run.family and run.size")
    steps = stored.get("train", {}).get("steps")
    known = settings.merged(defaults_of(run["family"], run["size"], steps), stored)
    given = _stated(given)
    if "family" in given.get("run", {}):
        given["run"]["family"] = recipes.ALIASES.get(given["run"]["family"], given["run"]["family"])
    layers = [given]
    if config is not None:
        layers.insert(0, settings.read(pathlib.Path(config)))
        layers[0].get("data", {}).pop("digests", None)
    for text in changes:
        section, key, value = settings.parse(text)
        layers.append({section: {key: value}})
    wanted = settings.merged(known, *layers)
    for name in settings.differences(known, wanted):
        if name not in HARMLESS:
            section, _, key = name.partition(".")
            raise SettingError(
                f"the run in '{begun.parent}' has {name} = {known[section][key]!r}, not {wanted[section][key]!r}; "
                "start another one in an empty directory"
            )
    wanted["data"] |= {key: known["data"][key] for key in ("text", "target")}
    wanted["data"]["digests"] = digests
    return wanted


def _stated(given: Settings) -> Settings:
    tables = {section: {k: v for k, v in table.items() if v is not None} for section, table in given.items()}
    return {section: table for section, table in tables.items() if table}
