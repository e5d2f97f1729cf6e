"""Tasks that a model learns beside the one that a fine-tuning run is for (data.also).

In config.toml, and on the command line as --also with one table:

[data] also = [{name = "pos", task = "tagging", train = "pos.txt", dev = "pos-dev.txt"}]
"""

from __future__ import annotations

import re
from typing import Any

from plmcore.data.tasks import SPLITS
from plmcore.tasks import task_settings
from plmcore.train import settings
from plmcore.train.settings import SettingError, Settings

NAME = re.compile(r"\w[\w.-]*")
KINDS = ("tagging", "classification")  # that share a body
KEYS: dict[str, Any] = {
    "name": "",
    "task": "",
    **dict.fromkeys(SPLITS, ""),
    "columns": [],
    "labels": [],
    "metrics": [],
    "scheme": "",
}


def parse(argument: str) -> dict[str, Any]:
    """TASK=FILE, or a table as in config.toml."""
    return settings.parse_table("--also", argument, "train")


def chosen(of_run: Settings) -> dict[str, Settings]:
    """The settings of each further task by its name, as if the run were for it."""
    found: dict[str, Settings] = {}
    for table in of_run["data"]["also"]:
        where = f"data.also: {table.get('name') or table.get('task') or 'a table'}"
        values = settings.merged({where: KEYS}, {where: table})[where]
        for key in ("task", "train"):
            if not values[key]:
                raise SettingError(f'{where} must have {key} = "..."')
        kind = task_settings.kind_of(values["task"])
        if kind not in KINDS:
            raise SettingError(
                f"{where}: tasks that are learnt together are {' and '.join(KINDS)}, got {values['task']!r}"
            )
        name = values["name"] or values["task"]
        if not NAME.fullmatch(name):
            raise SettingError(f"{where}: a name has letters, digits, - and _, got {name!r}")
        if name in found or name == of_run["task"]["name"]:
            raise SettingError(f'{where}: a task with the name {name!r} is there; give it name = "..."')
        found[name] = _settings(of_run, name, values)
    return found


def _settings(of_run: Settings, name: str, values: dict[str, Any]) -> Settings:
    usual = task_settings.defaults(values["task"], of_run["run"]["model"])
    own = {"name": name} | {key: values[key] for key in ("metrics", "scheme") if values[key]}
    files = {split: values[split] or None for split in SPLITS}
    kept = {key: values[key] for key in ("columns", "labels")}
    alone: dict[str, Any] = {"folder": None, "unlabelled": None, "also": [], "held_out": 0.0}
    made = {
        "run": of_run["run"] | {"task": values["task"]},
        "data": of_run["data"] | files | kept | alone,
        "task": usual["task"] | own,
        "adapt": of_run["adapt"],
    }
    task_settings.fill_lengths(made)
    return made
