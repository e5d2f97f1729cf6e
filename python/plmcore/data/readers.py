"""Readers of the common file formats.

Each gives one record after the other; what is wrong is a FormatError with file and line.

All take plain and gzip files, and errors="replace" to read what is not UTF-8 as U+FFFD.
"""

from __future__ import annotations

import itertools
import json
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from plmcore._core import ArgumentError, FormatError
from plmcore.files.text import Path, decode, is_blank, lines, opened

Record = dict[str, Any]


def read_text(path: Path, *, documents: str = "blank", errors: str = "strict") -> Iterator[str]:
    """Documents of a text file: separated by blank lines ("blank"), one to a line ("line"),
    or the whole file ("file").
    """
    if documents not in ("blank", "line", "file"):
        raise ArgumentError(f"documents must be 'blank', 'line' or 'file', got {documents!r}")
    if documents == "file":
        with opened(path) as f:
            text = decode(f.read(), errors, path, 1, 0).replace("\r\n", "\n").rstrip("\n")
        if not is_blank(text):
            yield text
        return
    gathered: list[str] = []
    for _, line in lines(path, errors):
        blank = is_blank(line)
        if not blank:
            gathered.append(line)
        if gathered and (blank or documents == "line"):
            yield "\n".join(gathered)
            gathered = []
    if gathered:
        yield "\n".join(gathered)


def read_jsonl(path: Path, *, errors: str = "strict") -> Iterator[Record]:
    """Reads a JSON object from each line; skips blank lines."""
    return (record for _, record in numbered_jsonl(path, errors=errors))


def numbered_jsonl(path: Path, *, errors: str = "strict") -> Iterator[tuple[int, Record]]:
    for number, line in lines(path, errors):
        if not is_blank(line):
            yield number, json_object(line, path, number)


def json_object(line: str, path: Path, number: int) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as e:
        raise wrong(path, number, f"not valid JSON: {e}") from None
    if not isinstance(record, dict):
        raise wrong(path, number, f"one JSON object to a line, got a {type(record).__name__}")
    return record


def read_table(
    path: Path,
    *,
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
    quoted: bool | None = None,
    ragged: str = "error",
    errors: str = "strict",
) -> Iterator[dict[str, str]]:
    """Rows of a TSV or CSV file by the names of its first line, or by those given as `header`; header=False
    names columns "0", "1", ...

    Without `delimiter` a name in .csv means commas, any other tabs. `quoted` fields may hold the delimiter
    and line breaks, and "" for a quote; without it that is so for commas only. Every row must have as many
    fields as the header; ragged="skip" passes over those that have not, ragged="fit" takes the fields that
    they have, and none behind the last of the header.
    """
    options: dict[str, Any] = dict(
        delimiter=delimiter, header=header, quoted=quoted, ragged=ragged, errors=errors
    )
    return (row for _, row in numbered_table(path, **options))


def numbered_table(
    path: Path,
    *,
    delimiter: str | None = None,
    header: bool | Sequence[str] = True,
    quoted: bool | None = None,
    ragged: str = "error",
    errors: str = "strict",
) -> Iterator[tuple[int, dict[str, str]]]:
    if ragged not in ("error", "skip", "fit"):
        raise ArgumentError(f"ragged must be 'error', 'skip' or 'fit', got {ragged!r}")
    if delimiter is None:
        delimiter = "," if ".csv" in pathlib.Path(path).suffixes else "\t"
    quoted = delimiter == "," if quoted is None else quoted
    names = None if isinstance(header, bool) else list(header)
    rows = _quoted_rows(path, delimiter, errors) if quoted else _plain_rows(path, delimiter, errors)
    for number, row in rows:
        if names is None:
            names = row if header else [str(k) for k in range(len(row))]
            if len(set(names)) < len(names):
                raise wrong(path, number, f"the header names a column twice: {names}")
            if header:
                continue
        if len(row) == len(names) or ragged == "fit":
            yield number, dict(zip(names, row))
        elif ragged == "error":
            raise wrong(path, number, f"{len(names)} fields expected ({', '.join(names)}), got {len(row)}")


def _plain_rows(path: Path, delimiter: str, errors: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in lines(path, errors):
        if line:
            yield number, line.split(delimiter)


def _quoted_rows(path: Path, delimiter: str, errors: str) -> Iterator[tuple[int, list[str]]]:
    numbered = lines(path, errors)
    for number, line in numbered:
        if '"' not in line:
            if line:
                yield number, line.split(delimiter)
            continue
        while line.count('"') % 2:  # a field goes on in the next line
            following = next(numbered, None)
            if following is None:
                raise wrong(path, number, "a quoted field that begins here does not end")
            line += "\n" + following[1]
        yield number, _quoted_fields(line, delimiter, path, number)


def _quoted_fields(line: str, delimiter: str, path: Path, number: int) -> list[str]:
    """Fields of a row with an even number of quotes: between two delimiters outside quotes."""
    fields, gathered = [], ""
    for piece in line.split(delimiter):
        gathered = gathered + delimiter + piece if gathered else piece
        if gathered.count('"') % 2:
            continue
        if gathered.startswith('"'):
            inner = gathered[1:-1] if len(gathered) > 1 and gathered.endswith('"') else None
            if inner is None or '"' in inner.replace('""', ""):
                raise wrong(path, number, f"text behind the closing quote of {gathered[:60]!r}")
            gathered = inner.replace('""', '"')
        fields.append(gathered)
        gathered = ""
    return fields


def read_conll(
    path: Path,
    columns: Sequence[str | None],
    *,
    separator: str | None = None,
    skip: str | None = "-DOCSTART-",
    errors: str = "strict",
) -> Iterator[dict[str, list[str]]]:
    """Sentences of a column file, a token to a line and a blank line behind each sentence: a list for every
    column, by the names given (None: not read).

    Columns are separated by white space, or by `separator`.
    Sentences that begin with the token `skip` are left out.
    """
    kept = [(k, name) for k, name in enumerate(columns) if name is not None]
    rows: list[list[str]] = []

    def sentence() -> Iterator[dict[str, list[str]]]:
        if rows and (skip is None or rows[0][0] != skip):
            yield {name: [row[k] for row in rows] for k, name in kept}
        rows.clear()

    for number, line in lines(path, errors):
        if not line.strip():
            yield from sentence()
            continue
        row = line.split(separator)
        if len(row) != len(columns):
            raise wrong(path, number, f"{len(columns)} columns expected, got {len(row)}: {line[:80]!r}")
        rows.append(row)
    yield from sentence()


CONLLU = ("id", "tokens", "lemmas", "upos", "xpos", "features", "heads", "relations", "enhanced", "misc")


def read_conllu(path: Path, *, errors: str = "strict") -> Iterator[Record]:
    """Sentences of a CoNLL-U file: tokens, lemmas, upos, xpos, features, heads (0: the root), relations, and
    the comments `# key = value` as `comments`.

    Words are read; lines for a joined written form (1-2) and for words left out (1.1) are not.
    """
    rows: list[list[str]] = []
    comments: dict[str, str] = {}
    for number, line in itertools.chain(lines(path, errors), [(0, "")]):
        if line.startswith("#") and not rows:
            key, _, value = line[1:].partition("=")
            comments[key.strip()] = value.strip()
        elif line.strip():
            row = line.split("\t")
            if len(row) != len(CONLLU):
                raise wrong(
                    path,
                    number,
                    f"{len(CONLLU)} columns separated by tabs expected, got {len(row)}: {line[:80]!r}",
                )
            if "-" in row[0] or "." in row[0]:
                continue
            if row[0] != str(len(rows) + 1):
                raise wrong(path, number, f"word {len(rows) + 1} of the sentence expected, got {row[0]!r}")
            if row[6] != "_" and not (row[6].isascii() and row[6].isdigit()):
                raise wrong(path, number, f"the head must be the number of a word, got {row[6]!r}")
            rows.append(row)
        elif rows:
            record: Record = {name: [row[k] for row in rows] for k, name in enumerate(CONLLU[:8]) if k}
            record["heads"] = [None if h == "_" else int(h) for h in record["heads"]]
            yield {**record, "comments": comments}
            rows, comments = [], {}


def read_squad(path: Path, *, errors: str = "strict") -> Iterator[Record]:
    """Questions of a SQuAD file (1.1 and 2.0): id, title, context, question,
    answers [{text, start}], impossible.

    Such a file is one JSON value and read whole.
    """
    with opened(path) as f:
        text = decode(f.read(), errors, path, 1, 0)
    try:
        articles = json.loads(text)["data"]
    except (json.JSONDecodeError, RecursionError) as e:
        raise FormatError(f"'{os.fspath(path)}' is not valid JSON: {e}") from None
    except (KeyError, TypeError):
        raise FormatError(
            f"'{os.fspath(path)}' is no SQuAD file: it must be an object with a list 'data'"
        ) from None
    where = "data"
    try:
        for a, article in enumerate(articles):
            for p, paragraph in enumerate(article["paragraphs"]):
                for q, asked in enumerate(paragraph["qas"]):
                    where = f"data[{a}].paragraphs[{p}].qas[{q}]"
                    answers = [
                        {"text": x["text"], "start": x["answer_start"]} for x in asked.get("answers", [])
                    ]
                    yield {
                        "id": asked["id"],
                        "title": article.get("title", ""),
                        "context": paragraph["context"],
                        "question": asked["question"],
                        "answers": answers,
                        "impossible": bool(asked.get("is_impossible", False)),
                    }
    except (KeyError, TypeError, AttributeError) as e:
        raise FormatError(
            f"'{os.fspath(path)}' is no SQuAD file: {type(e).__name__} {e} at or behind {where}"
        ) from None


def read_parallel(source: Path, target: Path, *, errors: str = "strict") -> Iterator[dict[str, str]]:
    """Lines of two files with as many lines each: {source, target}.

    An empty line is the translation of an empty line.
    """
    pairs = itertools.zip_longest(lines(source, errors), lines(target, errors))
    for number, (one, other) in enumerate(pairs, 1):
        if one is None or other is None:
            shorter, longer = (source, target) if one is None else (target, source)
            raise wrong(
                shorter,
                number,
                f"the file ends, and '{os.fspath(longer)}' goes on; they must have as many lines each",
            )
        yield {"source": one[1], "target": other[1]}


def read_parquet(path: Path, *, columns: Sequence[str] | None = None) -> Iterator[Record]:
    """Rows of a Parquet file. Needs the package pyarrow."""
    pa = parquet_library()
    with open(path, "rb") as f:
        try:
            table = pa.parquet.ParquetFile(f)
            missing = set(columns or ()) - set(table.schema_arrow.names)
            if missing:
                raise FormatError(
                    f"'{os.fspath(path)}' has no column {sorted(missing)[0]!r}, only "
                    f"{table.schema_arrow.names}"
                )
            for rows in table.iter_batches(1024, columns=None if columns is None else list(columns)):
                yield from rows.to_pylist()
        except (pa.ArrowException, OSError) as e:
            raise FormatError(f"'{os.fspath(path)}' cannot be read: {e}") from None


def parquet_library() -> ModuleType:
    """pyarrow with its module parquet."""
    try:
        library = import_module("pyarrow")
        import_module("pyarrow.parquet")
    except ImportError:
        raise ModuleNotFoundError(
            "reading Parquet needs pyarrow: pip install 'plmcore[parquet]'", name="pyarrow"
        ) from None
    return library


def text_field(record: Mapping[str, Any], field: str, path: Path, where: str) -> str:
    text = record.get(field)
    if not isinstance(text, str):
        what = (
            f"has no {field!r}, only {', '.join(record)}"
            if field not in record
            else f"has a {type(text).__name__} as {field!r}, not a text"
        )
        raise FormatError(f"'{os.fspath(path)}', {where} {what}")
    return text


def wrong(path: Path, line: int, what: str) -> FormatError:
    return FormatError(f"'{os.fspath(path)}', line {line}: {what}")
