"""Tables in memory: lists of dicts, dicts of columns,
pandas and pyarrow tables and what has columns as they do.

None of these packages is imported here.

rows = tables.rows([{"text": "a lovely film", "label": "good"}], "train")
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np

from plmcore._core import ArgumentError, FormatError, KindError
from plmcore.data.readers import Record
from plmcore.files.whole import json_bytes


class Frame(Protocol):
    """What pandas has."""

    @property
    def columns(self) -> Any: ...

    def __getitem__(self, name: Any, /) -> Any: ...


class Named(Protocol):
    """What pyarrow and Hugging Face's datasets have."""

    @property
    def column_names(self) -> Any: ...

    def __getitem__(self, name: Any, /) -> Any: ...


Table = Iterable[Mapping[str, Any]] | Mapping[str, Iterable[Any]] | Frame | Named
KEPT = ".table.jsonl"  # how the name of a file ends in which a table was kept
KINDS = "a list of dicts, a dict of lists, a pandas DataFrame or a pyarrow Table"


def is_table(value: Any) -> TypeGuard[Table]:
    """Whether a value is neither a path nor a list of paths."""
    if value is None or isinstance(value, (str, bytes, os.PathLike)):
        return False
    if isinstance(value, (list, tuple)):
        return not any(isinstance(v, (str, os.PathLike)) for v in value)
    return True


def rows(table: Table, name: str) -> list[Record]:
    """The rows of a table, its columns by name, their values as JSON has them:
    missing ones (None, NaN) are None.

    `name` is for messages.
    """
    columns = _columns(table)
    if columns is not None:
        found = _transposed(columns, name)
    elif isinstance(table, Iterable) and not isinstance(table, (str, bytes, Mapping, np.ndarray)):
        found = []
        for number, row in enumerate(table, 1):
            if not isinstance(row, Mapping):
                raise KindError(
                    f"{name}, row {number}: each row must be a dict, got {_kind(row)}; a table is {KINDS}"
                )
            found.append(row)
    else:
        raise KindError(f"{name} must be a file or a table ({KINDS}), got {_kind(table)}")
    if not found:
        raise ArgumentError(f"{name}: the table has no rows")
    return [{str(key): _plain(row[key], name, n, key) for key in row} for n, row in enumerate(found, 1)]


def is_kept(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a table that a run had in memory."""
    return os.fspath(path).endswith(KEPT)


def dumps(rows: Sequence[Record]) -> bytes:
    """As JSON lines: the same table gives the same bytes."""
    return b"".join(map(json_bytes, rows))


def _columns(table: Any) -> dict[str, Sequence[Any]] | None:
    """The columns of a table that is made of them, else None."""
    if isinstance(table, Mapping):
        return dict(table)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        if not table.columns.is_unique:
            raise ArgumentError(
                f"the table has two columns of one name: {', '.join(map(str, table.columns))}"
            )
        return {name: table[name].tolist() for name in table.columns}
    if hasattr(table, "to_pydict"):  # pyarrow
        return dict(table.to_pydict())
    if hasattr(table, "column_names") and hasattr(
        table, "__getitem__"
    ):  # a dataset of Hugging Face's library
        return {name: list(table[name]) for name in table.column_names}
    return None


def _transposed(columns: Mapping[Any, Any], name: str) -> list[Mapping[Any, Any]]:
    lengths = {}
    for key, column in columns.items():
        if (
            isinstance(column, (str, bytes, Mapping))
            or not hasattr(column, "__len__")
            or not hasattr(column, "__iter__")
        ):
            raise KindError(f"{name}: column {key!r} must be a list, got {_kind(column)}; a table is {KINDS}")
        lengths[key] = len(column)
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{key} {length}" for key, length in lengths.items())
        raise ArgumentError(f"{name}: all columns must have as many rows, got {shown}")
    return [dict(zip(columns, values)) for values in zip(*columns.values(), strict=True)]


def _plain(value: Any, name: str, number: int, key: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # pandas has its own
        return None
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as e:
            raise FormatError(
                f"{name}, row {number}: {key} has half of a surrogate pair at character {e.start}, "
                f"which is no text"
            ) from None
        return str(value)
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, Mapping):
        return {str(k): _plain(v, name, number, key) for k, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(v, name, number, key) for v in value]
    raise KindError(
        f"{name}, row {number}: {key} must be text, a number or a list of them, got {_kind(value)}"
    )


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}"
