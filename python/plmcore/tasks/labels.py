"""The classes of a task: their names in order, and their numbers in records."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

from plmcore._core import FormatError
from plmcore.data.readers import Record


def label_list(records: Sequence[Record], field: str = "label") -> list[str]:
    """The labels that occur, numbers by size, others by the alphabet; tags with O first."""
    found = {label for r in records for label in _of(r, field)}
    if found and all(label.lstrip("-").isdigit() for label in found):
        return sorted(found, key=int)
    return sorted(found, key=lambda label: (label != "O", label))


def check_varied(records: Sequence[Record], path: str | os.PathLike[str], field: str = "label") -> None:
    """There is something to learn only where labels differ."""
    found = {label for r in records for label in _of(r, field)}
    if len(found) < 2:
        only = f"are {next(iter(found))!r}" if found else "are missing"
        raise FormatError(
            f"'{os.fspath(path)}': all {field}s {only} in {len(records)} records, so that there is "
            f"nothing to learn"
        )


def number(
    records: Sequence[Record],
    labels: Sequence[str],
    path: str | os.PathLike[str],
    aliases: Mapping[str, int] | None = None,
    *,
    needed: bool = True,
) -> list[int | None]:
    """The number of each record's label. `aliases` are other names of the classes.

    An error names the line of a label that is not known, or of none where it is `needed`.
    """
    numbers = {**(aliases or {}), **{label: i for i, label in enumerate(labels)}}
    result: list[int | None] = []
    for record in records:
        label = record["label"]
        if label is None and not needed:
            result.append(None)
            continue
        if label not in numbers:
            what = (
                "there is no label"
                if label is None
                else f"the label {label!r} is not one of {_shown(labels)}"
            )
            raise at(record, path, what)
        result.append(numbers[label])
    return result


def choices(
    records: Sequence[Record], path: str | os.PathLike[str], *, needed: bool = True
) -> list[int | None]:
    """The number of the right choice, from 0. All records must have as many choices as the first."""
    result: list[int | None] = []
    for record in records:
        if (n := len(record["choices"])) != (first := len(records[0]["choices"])):
            raise at(record, path, f"there are {n} choices, and {first} in the first record")
        known = [str(k) for k in range(len(record["choices"]))]
        if record["label"] is None and not needed:
            result.append(None)
        elif record["label"] in known:
            result.append(int(record["label"]))
        else:
            raise at(
                record,
                path,
                f"the label must be the number of a choice, 0 to {len(known) - 1}, got {record['label']!r}",
            )
    return result


def tags(
    records: Sequence[Record], labels: Sequence[str], path: str | os.PathLike[str], *, needed: bool = True
) -> list[list[int] | None]:
    """The same for lists of tags."""
    numbers = {label: i for i, label in enumerate(labels)}
    for record in records:
        if record["tags"] is None and needed:
            raise at(record, path, "the words have no tags")
        for tag in record["tags"] or ():
            if tag not in numbers:
                raise at(record, path, f"the tag {tag!r} is not one of {_shown(labels)}")
    return [None if r["tags"] is None else [numbers[t] for t in r["tags"]] for r in records]


def texts(
    records: Sequence[Record], path: str | os.PathLike[str], *, needed: bool = True
) -> list[str | None]:
    """Targets that are texts themselves."""
    for record in records:
        if not (record["target"] or "").strip() and needed:
            raise at(record, path, "there is no target")
    return [r["target"] for r in records]


def values(
    records: Sequence[Record], path: str | os.PathLike[str], *, needed: bool = True
) -> list[float | None]:
    """Labels that are numbers themselves."""
    result: list[float | None] = []
    for record in records:
        try:
            label = record["label"]
            value = None if label is None and not needed else float(cast(Any, label))
        except (TypeError, ValueError):
            value = math.nan
        if value is not None and not math.isfinite(value):
            raise at(record, path, f"the label must be a number, got {record['label']!r}")
        result.append(value)
    return result


def bioes(tags: Sequence[str]) -> list[str]:
    """BIO tags as BIOES: E- ends a stretch of more than one word, S- is one of a single word.

    An I- with nothing before it begins one.
    """
    result = []
    for i, tag in enumerate(tags):
        prefix, dash, kind = tag.partition("-")
        if not dash or prefix not in ("B", "I"):
            result.append(tag)
            continue
        before = result[-1] if result else "O"
        begins = prefix == "B" or before in (f"E-{kind}", f"S-{kind}") or before.partition("-")[2] != kind
        goes_on = i + 1 < len(tags) and tags[i + 1] == f"I-{kind}"
        result.append(
            ("B" if goes_on else "S") + f"-{kind}" if begins else ("I" if goes_on else "E") + f"-{kind}"
        )
    return result


def bio(tags: Sequence[str]) -> list[str]:
    """The way back."""
    begins = {"S": "B", "E": "I"}
    parts = [tag.partition("-") for tag in tags]
    return [begins.get(p, p) + dash + kind if dash else p for p, dash, kind in parts]


def at(record: Record, path: str | os.PathLike[str], what: str) -> FormatError:
    line = record["line"]
    return FormatError(f"'{os.fspath(path)}', {f'line {line}' if isinstance(line, int) else line}: {what}")


def _of(record: Record, field: str) -> Sequence[str]:
    found = record[field]
    if found is None:
        return ()
    return [found] if isinstance(found, str) else found


def _shown(labels: Sequence[str]) -> str:
    return ", ".join(labels[:12]) + (f" and {len(labels) - 12} more" if len(labels) > 12 else "")
