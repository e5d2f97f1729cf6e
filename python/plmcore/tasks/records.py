"""Records of a task from a file: which column is what, and what is wrong in which line.

Fields are those of plmcore.data: text and pair with label; context, question and choices with label; tokens
with tags; context, question and answers; source with target. Here a label is what stands in the file;
plmcore.tasks.labels numbers it. Every record knows its `line`.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from plmcore._core import ArgumentError, FormatError
from plmcore.data import columns as columns_of
from plmcore.data import readers
from plmcore.data.readers import Record, wrong
from plmcore.files.text import lines

KINDS = ("classification", "pair", "regression", "multiple-choice", "tagging", "qa", "seq2seq", "lm")
# The fields of a table without a header, by the number of its columns; the last one may be absent where there
# is nothing to learn.
ORDERS = {
    "classification": [("text", "label"), ("text",)],
    "pair": [("text", "pair", "label"), ("text", "pair")],
    "regression": [("text", "label"), ("text", "pair", "label")],
    "seq2seq": [("source", "target"), ("source",)],
}
NEEDED = {
    "classification": ("text",),
    "pair": ("text", "pair"),
    "regression": ("text",),
    "multiple-choice": ("context",),
    "seq2seq": ("source",),
    "lm": ("text",),
}
CHOICES = ("choice", "ending", "option")


def read(
    path: str | pathlib.Path,
    kind: str,
    columns: Sequence[str] | None = None,
    errors: str = "strict",
    labelled: bool = False,
) -> list[Record]:
    """All records of a file: a TSV or CSV table, JSON lines, a column file of tags or a SQuAD file, by its
    name and the kind of task.

    columns ["label", "text", "pair"] names the columns of a table without a header ("-": not read);
    ["text=sentence", "label=gold"] says which columns of one with a header are meant. Without them a header
    is known by its names, and a table without one must have the fields in their usual order. `labelled`:
    there must be a column for the label.
    """
    path = pathlib.Path(path)
    if ".jsonl" in path.suffixes or (".json" in path.suffixes and kind != "qa"):
        return of_rows(readers.numbered_jsonl(path, errors=errors), kind, columns, path, labelled=labelled)
    if kind == "tagging":
        return list(_sentences(path, columns, errors))
    if kind == "qa":
        return [{**record, "line": record["id"]} for record in readers.read_squad(path, errors=errors)]
    return list(_table(path, kind, columns, errors, labelled))


def of_rows(
    rows: Iterable[tuple[int, Mapping[str, Any]]],
    kind: str,
    columns: Sequence[str] | None,
    path: str | pathlib.Path,
    *,
    unit: str = "line",
    labelled: bool = False,
) -> list[Record]:
    """The records of numbered rows whose columns have names: of JSON lines, or of a table in memory, whose
    `unit` is a row.

    The fields of tagging are lists; answers are as SQuAD has them, or lists of their texts and starts.
    """
    renamed = columns_of.renaming(columns)
    if columns and len(renamed) < len(columns):
        raise ArgumentError(
            f"'{path}' has columns with names: columns say which is which, as text=review,label=stars; "
            f"got {','.join(columns)}"
        )
    make = {"tagging": _tagged, "qa": _asked}.get(kind, functools.partial(_fields, kind=kind))
    return [
        make(row, where=Where(path, number, unit), renamed=renamed, labelled=labelled) for number, row in rows
    ]


@dataclasses.dataclass(frozen=True)
class Where:
    """The place of a record, for messages."""

    path: str | pathlib.Path
    number: int
    unit: str = "line"

    @property
    def line(self) -> int | str:
        """As records keep it."""
        return self.number if self.unit == "line" else f"{self.unit} {self.number}"

    def wrong(self, what: str) -> FormatError:
        return FormatError(f"'{self.path}', {self.unit} {self.number}: {what}")

    def column(
        self, row: Mapping[str, Any], field: str, renamed: Mapping[str, str], *, needed: bool
    ) -> str | None:
        """The column of a field: the one that was named, or one of its usual names."""
        column = renamed.get(field) or columns_of.column(row, field)
        if column is not None and column not in row:
            raise self.wrong(f"there is no column {column!r}, only {', '.join(row)}")
        if column is None and needed:
            raise self.wrong(
                f"there is no column for the {field}, only {', '.join(row)}; --columns {field}=NAME, "
                f'in Python columns=["{field}=NAME"], says which it is'
            )
        return column

    def text(self, row: Mapping[str, Any], field: str, renamed: Mapping[str, str]) -> str:
        column = self.column(row, field, renamed, needed=True) or field
        text = row[column]
        if not isinstance(text, str):
            raise self.wrong(f"{column} must be a text, got {text!r}")
        return text


def _table(
    path: pathlib.Path, kind: str, columns: Sequence[str] | None, errors: str, labelled: bool
) -> Iterator[Record]:
    renamed = columns_of.renaming(columns)
    if columns and not renamed:
        header: bool | Sequence[str] = columns_of.header(columns)
    else:
        header = renamed != {} or _header(path, kind, errors)
    for number, row in readers.numbered_table(path, header=header, errors=errors):
        yield _fields(row, kind=kind, where=Where(path, number), renamed=renamed, labelled=labelled)


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
        path,
        number,
        f"{len(names)} columns ({', '.join(n[:20] for n in names)}), "
        f"neither a header with {' and '.join(NEEDED[kind])} nor "
        f"{' or '.join(' '.join(o) for o in orders) or 'a table without one'}; name them with --columns",
    )


def _fields(
    row: Mapping[str, Any], *, kind: str, where: Where, renamed: Mapping[str, str], labelled: bool
) -> Record:
    record: Record = {"line": where.line}
    if kind == "multiple-choice":
        choices = row.get("choices") or [v for k, v in row.items() if k.startswith(CHOICES)]
        if not isinstance(choices, list) or len(choices) < 2 or not all(isinstance(c, str) for c in choices):
            raise where.wrong(
                f"at least two choices expected, in columns choice0, choice1, ...; there are {', '.join(row)}"
            )
        record |= {"choices": choices, "question": row.get(renamed.get("question", "question"), "")}
    for field in NEEDED[kind]:
        record[field] = where.text(row, field, renamed)
    optional = {"regression": ("pair", "label"), "seq2seq": ("target",), "lm": ()}.get(kind, ("label",))
    for field in optional:
        column = where.column(row, field, renamed, needed=labelled and field != "pair")
        if column is not None or field != "pair":
            value = None if column is None else row[column]
            record[field] = value if value is None or isinstance(value, str) else str(value)
    return record


def _tagged(row: Mapping[str, Any], *, where: Where, renamed: Mapping[str, str], labelled: bool) -> Record:
    """A list of words and one of their tags."""
    record: Record = {"line": where.line}
    for field, needed in (("tokens", True), ("tags", labelled)):
        column = where.column(row, field, renamed, needed=needed)
        value = None if column is None else row[column]
        if value is None and field == "tags":
            record[field] = None
        elif not isinstance(value, list) or not all(isinstance(v, (str, int)) for v in value):
            raise where.wrong(f"{column} must be a list of texts, got {value!r}")
        else:
            record[field] = [str(v) for v in value]
    if record["tags"] is not None and len(record["tags"]) != len(record["tokens"]):
        raise where.wrong(f"{len(record['tokens'])} tokens need as many tags, got {len(record['tags'])}")
    return record


def _asked(row: Mapping[str, Any], *, where: Where, renamed: Mapping[str, str], labelled: bool) -> Record:
    """A question with its context and answers; one whose answers are an empty list cannot be answered."""
    column = where.column(row, "answers", renamed, needed=labelled)
    found = None if column is None else row[column]
    if isinstance(found, Mapping):  # lists of texts and of starts
        texts, starts = found.get("text"), found.get("answer_start", found.get("start"))
        if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
            raise where.wrong(f"{column} must have lists text and answer_start of one length, got {found!r}")
        found = [{"text": t, "start": s} for t, s in zip(texts, starts, strict=True)]
    if found is not None and not isinstance(found, list):
        found = [found]
    answers = []
    for answer in found or []:
        if not isinstance(answer, Mapping) or not isinstance(answer.get("text"), str):
            raise where.wrong(f"an answer has a text and an answer_start, got {answer!r}")
        answers.append({"text": answer["text"], "start": answer.get("answer_start", answer.get("start"))})
    return {
        "id": str(row.get("id", f"{where.unit} {where.number}")),
        "title": str(row.get("title") or ""),
        "context": where.text(row, "context", renamed),
        "question": where.text(row, "question", renamed),
        "answers": answers,
        "impossible": bool(row.get("is_impossible", found is not None and not answers)),
        "line": where.line,
    }


def _sentences(path: pathlib.Path, columns: Sequence[str] | None, errors: str) -> Iterator[Record]:
    """Tokens and tags of a column file: the first and the last column, or those named; of a .conllu file
    words and their parts of speech.
    """
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
            raise ArgumentError(
                f"--columns must name the tokens, as in tokens,-,tags; got {','.join(columns)}"
            )
    else:
        width = next((len(line.split()) for _, line in lines(path, errors) if line.strip()), 2)
        names = ["tokens", *[None] * max(0, width - 2), *(["tags"] if width > 1 else [])]
    for number, sentence in enumerate(readers.read_conll(path, names, errors=errors), 1):
        yield {"tags": None, **sentence, "line": f"sentence {number}"}
