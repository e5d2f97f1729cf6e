"""Settings of a run: tables of values, as in config.toml, checked against those that are known.

defaults = {"optim": {"lr": 1e-3, ...}, "data": {...}, ...}
settings = merged(defaults, *layers({"run": {"seed": 1}}, None, ["optim.lr=3e-4"]))
text = dumps(settings)
"""

from __future__ import annotations

import copy
import math
import os
import pathlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plmcore._core import ArgumentError, FormatError, KindError
from plmcore.files.whole import MAX_JSON_BYTES, read_bytes
from plmcore.runtime.kinds import fits, spoken
from plmcore.train import hints

Settings = dict[str, dict[str, Any]]

NONE = "none"  # TOML has no null
KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text"}
# What may be none though it usually has a value: the settings of some tables, but for NEEDED, and FREE.
OPEN = ("model", "objective", "optim", "schedule")
NEEDED = (
    "objective.name",
    "optim.kind",
    "optim.lr",
    "optim.weight_decay",
    "optim.layer_decay",
    "schedule.kind",
)
# of several kinds: whoever uses them looks
MIXED = ("train.average",)
FREE = ("train.save_every", "train.evaluate_every", "adapt.unfreeze_every")
TABLES = ("mixture.tables", "train.extended", "data.also")  # empty lists whose members are no texts
# What one step or one row takes grows with these: a slip of the pen must not look like a program that hangs.
MOST = {"data.accumulate": 1 << 16, "data.batch": 1 << 20, "data.length": 1 << 20, "data.vocab": 1 << 24}


class SettingError(ArgumentError):
    """A setting that is not known, or not of its kind."""


def merged(
    defaults: Mapping[str, Mapping[str, Any]],
    *changes: Mapping[str, Mapping[str, Any]],
    kinds: Mapping[str, str] = {},
) -> Settings:
    """The defaults with what the changes, in turn, replace.

    Each key must be one of the defaults', its value of the same kind; `kinds` are those of settings without a
    default, by their names and as annotations have them: {"data.ramp": "int | None"}.
    """
    result: Settings = copy.deepcopy({name: dict(table) for name, table in defaults.items()})
    for tables in changes:
        for section, table in tables.items():
            if not isinstance(table, Mapping):
                raise SettingError(f"[{section}] must be a table, got {table!r}")
            if section not in result and not table:
                raise SettingError(f"there is no table [{section}]{hints.nearest(section, result)}")
            for key, value in table.items():
                name, default = f"{section}.{key}", known_key(defaults, section, key)
                result[section][key] = fitted(name, value, default, kinds.get(name, ""))
    return result


def known_key(settings: Mapping[str, Mapping[str, Any]], section: str, key: str) -> Any:
    """The value that stands there; SettingError says which setting may have been meant."""
    if key not in settings.get(section, {}):
        name = f"{section}.{key}" if section else key
        raise SettingError(f"there is no setting {name}{hints.setting(name, settings)}")
    return settings[section][key]


def fitted(name: str, value: Any, default: Any, kind: str = "") -> Any:
    """`value`, if it is of the default's kind, or of `kind` where there is none; whole numbers will do where
    a fraction may stand, and "none" for no value.
    """
    if name in MIXED:
        default = None
    if value == NONE and not isinstance(default, str):
        value = None
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise SettingError(
            f"{name} must be a number of 64 bits, "
            f"got one of {len(str(value)) if value.bit_length() < 4096 else 'too many'} digits"
        )
    if type(value) is int and value > MOST.get(name, value):
        raise SettingError(f"{name} must be at most {MOST[name]}, got {value}")
    if type(value) is float and math.isnan(value):
        raise SettingError(f"{name} must be a number, got nan")
    if value is None:
        if default == NONE:
            return NONE
        if default is not None and (
            name in NEEDED or (name.partition(".")[0] not in OPEN and name not in FREE)
        ):
            raise SettingError(f"{name} must be {_kind(default)}, got none")
        return None
    if default is None:
        wanted = [k for k in kind.split(" | ") if k != "None"]
        able = {*wanted, *(["int"] if "float" in wanted else [])}
        if wanted and all(k in KINDS for k in wanted) and type(value).__name__ not in able:
            raise SettingError(f"{name} must be {' or '.join(KINDS[k] for k in wanted)}, got {value!r}")
        if kind and not fits(tuple(value) if isinstance(value, list) and "tuple" in kind else value, kind):
            raise SettingError(f"{name} must be {spoken(kind)}, got {value!r}")
        return value
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(default, (list, tuple)) and isinstance(value, (list, tuple)):
        each: Any = dict if name in TABLES else str
        if default:
            each = type(default[0])
        if not all(type(v) is each or (each is float and type(v) is int) for v in value):
            raise SettingError(f"{name} must be a list, each {_kind(each())}, got {value!r}")
        return list(value)
    if type(value) is not type(default):
        raise SettingError(f"{name} must be {_kind(default)}, got {value!r}")
    return value


def parse(assignment: str) -> tuple[str, str, Any]:
    """section, key and value of "section.key=value"; without a section it is "", which no setting has.

    The value is TOML; what is not is a text, with the spaces at its end: "task.prefix=translate: ".
    """
    name, equals, text = assignment.partition("=")
    section, dot, key = name.strip().partition(".")
    if not dot:
        section, key = "", section
    if not (equals and key and (section or not dot)):
        raise SettingError(f"a setting reads section.key=value, as in optim.lr=3e-4; got {assignment!r}")
    text = text.lstrip()
    if text.rstrip() in ("", NONE):
        return section, key, None
    try:
        return section, key, tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return section, key, text


def parse_table(option: str, argument: str, file: str) -> dict[str, Any]:
    """The value of an option that is TASK=FILE, whose file has the key `file`, or a table as in config.toml:
    {task = "...", file = "...", ...}.
    """
    if argument.startswith("{"):
        try:
            return tomllib.loads(f"table = {argument}")["table"]
        except tomllib.TOMLDecodeError as e:
            raise SettingError(f"{option} {argument!r} cannot be read: {e}") from None
    task, equals, path = argument.partition("=")
    if not (task and equals and path):
        raise SettingError(
            f'{option} is TASK=FILE or {{task = "...", {file} = "...", ...}}, got {argument!r}'
        )
    return {"task": task, file: path}


def read(path: pathlib.Path) -> Settings:
    """The tables of a config.toml."""
    try:
        values = tomllib.loads(read_bytes(path, MAX_JSON_BYTES).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as e:
        raise FormatError(f"'{path}' cannot be read: {e}") from None
    for section, table in values.items():
        if not isinstance(table, dict):
            meant = [f"[{s.partition('.')[0]}] {s.partition('.')[2]}" for s in hints.FOREIGN.get(section, ())]
            hint = f"; did you mean {' or '.join(meant)}?" if meant else ""
            raise FormatError(f"'{path}' cannot be read: {section} must be a table{hint}")
    return values


def dumps(settings: Mapping[str, Mapping[str, Any]], defaults: Mapping[str, Mapping[str, Any]] = {}) -> str:
    """As TOML. What is None is left out, unless it has a default, which would come back."""
    import tomli_w

    known: Settings = {}
    for section, table in settings.items():
        usual = defaults.get(section, {})
        stored = {k: NONE if v is None and usual.get(k) is not None else v for k, v in table.items()}
        known[section] = {k: v for k, v in stored.items() if v is not None}
    try:
        return tomli_w.dumps(known)
    except TypeError as e:
        raise KindError(f"config.toml cannot hold it: {e}") from None


def differences(a: Mapping[str, Mapping[str, Any]], b: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The names of settings that are not equal."""
    names = [(s, k) for s in {**a, **b} for k in {**a.get(s, {}), **b.get(s, {})}]
    return [f"{s}.{k}" for s, k in names if a.get(s, {}).get(k) != b.get(s, {}).get(k)]


def layers(given: Settings, config: str | os.PathLike[str] | None, changes: Sequence[str]) -> list[Settings]:
    """What changes defaults, the last one last: a config.toml, what was given (None is not), single settings
    as "optim.lr=3e-4".
    """
    stored = read(pathlib.Path(config)) if config is not None else {}
    stored.get("data", {}).pop("digests", None)  # of the other run's files
    stated = {section: {k: v for k, v in table.items() if v is not None} for section, table in given.items()}
    parsed = [parse(text) for text in changes]
    for section, key, value in parsed:
        if (option := stated.get(section, {}).get(key, value)) is not value and option != value:
            raise SettingError(
                f"{section}.{key} is given twice: {option!r} by itself, and {value!r} among the settings"
            )
    return [
        stored,
        {section: table for section, table in stated.items() if table},
        *({section: {key: value}} for section, key, value in parsed),
    ]


def resumed(
    begun: pathlib.Path,
    needed: Sequence[str],
    defaults: Callable[[Settings], Settings],
    changes: Sequence[Settings],
    harmless: Sequence[str],
    kinds: Mapping[str, str],
) -> tuple[Settings, Settings]:
    """Those of the run that the config.toml `begun` is of, as they are and changed.

    What is given again must be the same, but for what changes no bit of the result.

    `needed` are the keys of [run] that the defaults depend on; `kinds` are those of merged.
    """
    stored = read(begun)
    digests = stored.get("data", {}).pop("digests", None)
    if not all(isinstance(stored.get("run", {}).get(key), str) for key in needed):
        raise SettingError(f"'{begun}' must say {' and '.join(f'run.{key}' for key in needed)}")
    known = merged(defaults(stored), stored, kinds=kinds)
    wanted = merged(known, *changes, kinds=kinds)
    for name in differences(known, wanted):
        if name not in harmless:
            section, _, key = name.partition(".")
            raise SettingError(
                f"the run in '{begun.parent}' has {name} = {known[section][key]!r}, not "
                f"{wanted[section][key]!r}; "
                "start another one in an empty directory"
            )
    wanted["data"]["digests"] = digests
    return known, wanted


def _kind(default: Any) -> str:
    kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list"}
    return kinds.get(type(default), f"a {type(default).__name__}")
