"""Supervised tasks beside the text: which file, and how its rows read as an input and a target.

In config.toml:

[mixture] tables = [{task = "sst2", file = "SST-2/train.tsv"}, {task = "topic", file = "topics.tsv",
columns = ["label", "text"], source = "topic: {text}", rate = 0.1}]
"""

from __future__ import annotations

import pathlib
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plmcore import data
from plmcore._core import FormatError
from plmcore.data import columns
from plmcore.data.readers import Record
from plmcore.files.whole import atomic_directory, atomic_write
from plmcore.objectives.mixture import shares_of
from plmcore.objectives.text_to_text import TASKS, Task
from plmcore.train import settings
from plmcore.train.settings import SettingError

TEXT = "text"  # the part of a mixture that has no table
KEYS: dict[str, Any] = {"task": "", "file": "", "columns": [], "source": "", "target": "", "rate": 0.0}
NAME = re.compile(r"\w[\w.-]*")

Table = dict[str, Any]
Pair = dict[str, str]  # source, target


def parse(argument: str) -> Table:
    """TASK=FILE, or a table as in config.toml."""
    return settings.parse_table("--supervised", argument, "file")


def check(mixture: Mapping[str, Any]) -> None:
    """The settings of a mixture, before a file is looked at."""
    check_tables(mixture["tables"])
    if isinstance(mixture["text_rate"], str | bool):
        raise SettingError(f"mixture.text_rate must be a number, got {mixture['text_rate']!r}")
    if mixture["tables"]:
        equal = dict.fromkeys([TEXT, *(table["task"] for table in mixture["tables"])], 1)
        shares_of(equal, rates_of(mixture), mixture["limit"], mixture["temperature"])


def rates_of(mixture: Mapping[str, Any]) -> dict[str, float]:
    """Those that are given, by part."""
    own = {table["task"]: table["rate"] for table in mixture["tables"] if "rate" in table}
    return own if mixture["text_rate"] is None else {TEXT: mixture["text_rate"], **own}


def check_tables(tables: Sequence[Any]) -> None:
    seen: set[str] = set()
    for table in tables:
        if not isinstance(table, Mapping):
            raise SettingError(f"mixture.tables must have tables, got {table!r}")
        where = f"mixture.tables: {table.get('task', 'a table')}"
        values = settings.merged({where: KEYS}, {where: table})[where]
        for key in ("task", "file"):
            if not values[key]:
                raise SettingError(f"{where} must have {key} = ...")
        task = values["task"]
        if task in seen or task == TEXT or not NAME.fullmatch(task):
            raise SettingError(
                f"{where}: a task has a name of letters, digits, - and _, its own and not {TEXT!r}"
            )
        seen.add(task)
        if not values["source"] and task not in TASKS:
            raise SettingError(
                f"{where} is none of T5's tasks ({', '.join(TASKS)}): say how its rows read, as in "
                f'source = "{task}: {{text}}"'
            )
        for key in ("source", "target"):
            check_template(f"{where}.{key}", values[key])


def fields_of(template: str) -> list[str]:
    """The names in braces."""
    return [field for _, field, _, _ in string.Formatter().parse(template) if field is not None]


def check_template(name: str, template: str) -> None:
    try:
        fields = fields_of(template)
    except ValueError as e:
        raise SettingError(f"{name}: {e}: {template!r}") from None
    if unnamed := [f for f in fields if not f.isidentifier()]:
        raise SettingError(f"{name}: braces hold the name of a field, got {{{unnamed[0]}}} in {template!r}")


def cast_of(table: Table) -> Task:
    """T5's, where the table does not say its own."""
    task, known = table["task"], TASKS.get(table["task"])
    declared = data.TASKS[task].labels if task in data.TASKS else None
    source = table.get("source") or (known.source if known else "")
    target = table.get("target") or (known.target if known else "{label}")
    return (type(known) if known else Task)(source, target, known.labels if known else declared or None)


def pairs(table: Table, errors: str = "strict") -> list[Pair]:
    """Inputs and targets of all rows; what is wrong is named with file and line."""
    path, cast = pathlib.Path(table["file"]), cast_of(table)
    found = [
        cast_row(cast, record, f"'{path}', {where}") for where, record in records(table, cast, path, errors)
    ]
    if not found:
        raise FormatError(f"'{path}' has no records")
    return found


def records(table: Table, cast: Task, path: pathlib.Path, errors: str) -> Iterator[tuple[str, Record]]:
    """Of a file, with their lines, or of a published task's file or folder, numbered."""
    declared = data.TASKS.get(table["task"])
    published = None
    if declared is not None and not table.get("columns"):
        published = declared.read_file(path, errors=errors)
    if published is None and path.is_dir():
        task = data.task(table["task"])
        published = task.read(path, next(iter(task.splits_in(path)["train"]), "train"), errors=errors)
    if published is not None:
        return ((f"record {number}", record) for number, record in enumerate(published, 1))
    needed = {*fields_of(cast.source), *fields_of(cast.target)}
    usual = [field for field in columns.NAMES if field in needed] if needed <= set(columns.NAMES) else []
    return (
        (f"line {line}", record) for line, record in columns.rows(path, table.get("columns"), usual, errors)
    )


def cast_row(cast: Task, record: Record, where: str) -> Pair:
    # a label that a file keeps back is None
    fields = {name: value for name, value in record.items() if value is not None}
    label = fields.get("label")
    if isinstance(answers := record.get("answers"), list) and answers:
        fields.setdefault("answer", answers[0]["text"] if isinstance(answers[0], dict) else answers[0])
    if cast.labels and isinstance(label, str) and label not in cast.labels:
        if label not in map(str, range(len(cast.labels))):
            known = ", ".join(cast.labels)
            raise FormatError(f"{where}: the label must be one of {known} or its number, got {label!r}")
        fields["label"] = int(label)
    try:
        source, target = cast(fields)
    except KeyError as e:
        raise FormatError(f"{where}: the record has no field {e}; it has {', '.join(fields)}") from None
    except (ValueError, TypeError, IndexError) as e:
        raise FormatError(f"{where}: {e}") from None
    for what, text in (("input", source), ("target", target)):
        if not text.strip():
            raise FormatError(f"{where}: the {what} is empty")
    return {"source": source, "target": target}


def files(folder: pathlib.Path, task: str) -> list[pathlib.Path]:
    """Where the inputs and the targets of a task are kept, line by line."""
    return [folder / f"{task}.{side}.txt" for side in ("source", "target")]


def write(folder: pathlib.Path, tables: Sequence[Table], errors: str = "strict") -> None:
    """The files of all tasks or, after an error, none. What stands in several lines is put into one."""
    made = {table["task"]: pairs(table, errors) for table in tables}
    with atomic_directory(folder) as new:
        for task, found in made.items():
            for file, side in zip(files(new, task), ("source", "target"), strict=True):
                with atomic_write(file) as f:
                    f.writelines((" ".join(pair[side].splitlines()) + "\n").encode() for pair in found)


def read(folder: pathlib.Path, task: str) -> list[Pair]:
    return list(data.read_parallel(*files(folder, task)))
