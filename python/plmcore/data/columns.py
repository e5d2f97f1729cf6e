"""Which column of a table is which field."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plmcore.data import readers
from plmcore.data.readers import Record, wrong

# Other names of fields in headers.
NAMES = {
    "text": ("sentence", "sentence1", "question1", "premise", "review"),
    "pair": ("sentence2", "question2", "hypothesis", "text2"),
    "label": ("labels", "score", "gold_label", "class", "target_label"),
    "source": ("src", "document", "article"),
    "target": ("tgt", "summary", "highlights"),
}


def renaming(columns: Sequence[str] | None) -> dict[str, str]:
    """field -> column, of ["field=column", ...]."""
    pairs = [c.partition("=") for c in columns or ()]
    return {field: column for field, equals, column in pairs if equals}


def header(columns: Sequence[str]) -> list[str]:
    """Names for a table without a header; "-" is a column that is not read."""
    return [f"-{i}" if c == "-" else c for i, c in enumerate(columns)]


def column(names: Sequence[str] | Mapping[str, Any], field: str) -> str | None:
    """The column of a field by its usual names."""
    return next((name for name in (field, *NAMES.get(field, ())) if name in names), None)


def rows(
    path: pathlib.Path,
    columns: Sequence[str] | None = None,
    usual: Sequence[str] = (),
    errors: str = "strict",
) -> Iterator[tuple[int, Record]]:
    """Line and fields of each row of a TSV or CSV table or of JSON lines: its columns by their names, and the
    fields that they are known as.

    columns ["label", "text"] names the columns of a table without a header,
    ["text=sentence"] says which column is which field.
    `usual` are the fields of a table whose first line names none of them, if it has as many columns.
    """
    renamed = renaming(columns)
    if ".jsonl" in path.suffixes or ".json" in path.suffixes:
        found: Iterator[tuple[int, Record]] = readers.numbered_jsonl(path, errors=errors)
    else:
        names: bool | Sequence[str] = header(columns) if columns and not renamed else True
        if not columns and usual:
            _, first = next(readers.numbered_table(path, header=False, errors=errors), (0, {}))
            named = any(column(list(first.values()), field) for field in usual)
            names = named or len(first) != len(usual) or usual
        found = readers.numbered_table(path, header=names, errors=errors)
    for number, row in found:
        for field, name in renamed.items():
            if name not in row:
                raise wrong(path, number, f"there is no column {name!r}, only {', '.join(row)}")
        usual_names = {field: column(row, field) for field in NAMES}
        known = {field: name for field, name in usual_names.items() if name is not None} | renamed
        yield number, row | {field: row[name] for field, name in known.items()}
