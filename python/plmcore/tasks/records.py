"""Records of a task from a file: which column is what, and what is wrong in which line.

Fields are those of plmcore.data: text and pair with label; context, question and choices with label; tokens with tags; context,
question and answers; source with target. Here a label is what stands in the file; plmcore.tasks.labels numbers it. Every record knows its `line`.
"""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plmcore._core import ArgumentError
from plmcore.data import columns as columns_of
from plmcore.data import readers
from plmcore.data.readers import Record, wrong
from plmcore.text_files import lines

KINDS = ("classification", "pair", "regression", "multiple-choice", "tagging", "qa", "seq2seq", "lm")
# The fields of a table without a header, by the number of its columns; the last one may be absent where there is nothing to learn.
ORDERS = {
    "classification": [("text", "label"), ("text",)],
    "pair": [("text", "pair", "label"), ("text", "pair")],
    "regression": [("text", "label"), ("text", "pair", "label")],
    "seq2seq": [("source", "target"), ("source",)],
}
NEEDED = {
    "classification": ("text",), "pair": ("text", "pair"), "regression": ("text",), "multiple-choice": ("context",), "seq2seq": ("source",),
}  # fmt: skip
CHOICES = ("choice", "ending", "option")


def read(
    path: str | pathlib.Path, kind: str, columns: Sequence[str] | None = None, errors: str = "strict"
) -> list[Record]:
    """All records of a file: a TSV or CSV table, JSON lines, a column file of tags or a SQuAD file, by its name and the kind of task.

    columns ["label", "text", "pair"] names the columns of a table without a header ("-": not read); ["text=sentence", "label=gold"] says
    which columns of one with a header are meant. Without them a header is known by its names, and a table without one must have
    the fields in their usual order.
    """
    path = pathlib.Path(path)
    if kind == "tagging":
        return list(_sentences(path, columns, errors))
    if kind == "qa":
        return [{**record, "line": record["id"]} for record in readers.read_squad(path, errors=errors)]
    if ".jsonl" in path.suffixes or ".json" in path.suffixes:
        renamed = columns_of.renaming(columns)
        return [
            _fields(record, kind, path, number, renamed)
            for number, record in readers.numbered_jsonl(path, errors=errors)
        ]
    return list(_table(path, kind, columns, errors))


def _table(path: pathlib.Path, kind: str, columns: Sequence[str] | None, errors: str) -> Iterator[Record]:
    renamed = columns_of.renaming(columns)
    if columns and not renamed:
        header: bool | Sequence[str] = columns_of.header(columns)
    else:
        header = renamed != {} or _header(path, kind, errors)
    for number, row in readers.numbered_table(path, header=header, errors=errors):
        yield _fields(row, kind, path, number, renamed)


def _header(path: pathlib.Path, kind: str, errors: str) -> bool | Sequence[str]:
    """True where the first line names the fields; else the fields in their usual order."""
    first = next(itertools.islice(readers.numbered_table(path, header=False, errors=errors), 1), None)
    if first is None:
        return True
    number, row = first
    names = list(row.values())
    if all(columns_of.column(names, field) is not None for field in NEEDED[kind]):
        return True
    orders = ORDERS.get(kind, [])
    found = [order for order in orders if len(order) == len(names)]
    if found:
        return found[0]
    raise wrong(
        path, number,
        f"{len(names)} columns ({', '.join(n[:20] for n in names)}), neither a header with {' and '.join(NEEDED[kind])} nor "
        f"{' or '.join(' '.join(o) for o in orders) or 'a table without one'}; name them with --columns",
    )  # fmt: skip


def _fields(row: Mapping[str, Any], kind: str, path: pathlib.Path, number: int, renamed: Mapping[str, str]) -> Record:
    record: Record = {"line": number}
    if kind == "multiple-choice":
        choices = row.get("choices") or [v for k, v in row.items() if k.startswith(CHOICES)]
        if not isinstance(choices, list) or len(choices) < 2 or not all(isinstance(c, str) for c in choices):
            raise wrong(
                path,
                number,
                f"at least two choices expected, in columns choice0, choice1, ...; there are {', '.join(row)}",
            )
        record |= {"choices": choices, "question": row.get(renamed.get("question", "question"), "")}
    for field in NEEDED[kind]:
        column = renamed.get(field) or columns_of.column(row, field)
        record[field] = readers.text_field(row, column or field, path, f"line {number}")
    optional = {"regression": ("pair", "label"), "seq2seq": ("target",)}.get(kind, ("label",))
    for field in optional:
        column = renamed.get(field) or columns_of.column(row, field)
        if column is not None and column not in row:
            raise wrong(path, number, f"there is no column {column!r}, only {', '.join(row)}")
        if column is not None or field != "pair":
            value = None if column is None else row[column]
            record[field] = value if value is None or isinstance(value, str) else str(value)
    return record


def _sentences(path: pathlib.Path, columns: Sequence[str] | None, errors: str) -> Iterator[Record]:
    """Tokens and tags of a column file: the first and the last column, or those named; of a .conllu file words and their parts of speech."""
    if ".conllu" in path.suffixes:
        field = next((c.partition("=")[2] for c in columns or () if c.startswith("tags=")), "upos")
        for number, sentence in enumerate(readers.read_conllu(path, errors=errors), 1):
            if field not in sentence:
                raise ArgumentError(
                    f"CoNLL-U has no column {field!r} for tags; one of {', '.join(readers.CONLLU[1:8])}"
                )
            yield {"tokens": sentence["tokens"], "tags": sentence[field], "line": f"sentence {number}"}
        return
    if columns:
        names: list[str | None] = [None if c == "-" else c for c in columns]
        if "tokens" not in names:
            raise ArgumentError(f"--columns must name the tokens, as in tokens,-,tags; got {','.join(columns)}")
    else:
        width = next((len(line.split()) for _, line in lines(path, errors) if line.strip()), 2)
        names = ["tokens", *[None] * max(0, width - 2), *(["tags"] if width > 1 else [])]
    for number, sentence in enumerate(readers.read_conll(path, names, errors=errors), 1):
        yield {"tags": None, **sentence, "line": f"sentence {number}"}
