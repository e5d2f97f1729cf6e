"""How the files of tasks become records: small functions over the readers, each of which is or makes a function (path, errors) -> records.

Field names are the same for all tasks: text and pair with label; context, question, choices with label, or with answers; tokens with
tags; source with target. A label is the number of its class, or a float; None where the file keeps it back.
"""

from __future__ import annotations

import html
import itertools
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from plmcore._core import FormatError
from plmcore.data import readers
from plmcore.data.readers import Record, wrong
from plmcore.text_files import Path, is_blank, lines, opened

Read = Callable[..., Iterator[Record]]


def table(
    fields: Mapping[str, str], *, label: str | None = "label", classes: Sequence[str] | None = None, **options: Any
) -> Read:
    """Columns of a TSV or CSV file: {"text": "sentence"} reads column sentence as field text. Without `classes` the label is a float.

    A file without the column `label` has records with label None. `options` go to read_table.
    """
    return lambda path, errors: _labelled(
        path, readers.numbered_table(path, errors=errors, **options), fields, label, classes
    )


def jsonl(
    fields: Mapping[str, str], *, label: str = "label", classes: Sequence[str] | None = None, skip: str | None = None
) -> Read:
    """The same for JSONL. Records with the label `skip` are left out."""
    return lambda path, errors: _labelled(
        path, readers.numbered_jsonl(path, errors=errors), fields, label, classes, skip
    )


def _labelled(
    path: Path,
    records: Iterator[tuple[int, Record]],
    fields: Mapping[str, str],
    label: str | None,
    classes: Sequence[str] | None,
    skip: str | None = None,
) -> Iterator[Record]:
    for number, record in records:
        found: Record = {
            name: readers.text_field(record, column, path, f"line {number}") for name, column in fields.items()
        }
        value = record.get(label)
        if skip is not None and value == skip:
            continue
        found["label"] = None if value is None else number_of(value, classes, path, number)
        yield found


def number_of(value: str, classes: Sequence[str] | None, path: Path, line: int) -> int | float:
    try:
        return float(value) if classes is None else classes.index(value)
    except (ValueError, TypeError):
        what = "a number" if classes is None else "one of " + ", ".join(classes)
        raise wrong(path, line, f"the label must be {what}, got {value!r}") from None


def choices(
    context: Sequence[str], endings: Sequence[str], *, question: str | None = None, label: str, first: int = 0
) -> Read:
    """A table of contexts (the columns joined by spaces) with endings to choose from; labels count from `first`."""

    def read(path: pathlib.Path, errors: str) -> Iterator[Record]:
        for number, row in readers.numbered_table(path, errors=errors):
            missing = {*context, *endings, *filter(None, [question])} - set(row)
            if missing:
                raise wrong(path, number, f"there is no column {sorted(missing)[0]!r}, only {', '.join(row)}")
            value = row.get(label)
            known = [str(first + k) for k in range(len(endings))]
            yield {
                "context": " ".join(row[c] for c in context),
                "question": row[question] if question else "",
                "choices": [row[c] for c in endings],
                "label": None if value is None else number_of(value, known, path, number),
            }

    return read


def race(path: pathlib.Path, errors: str) -> Iterator[Record]:
    """RACE: a folder with a folder for each level, in them a JSON file for each passage."""
    for file in sorted(path.glob("*/*.txt")):
        passage = next(readers.read_text(file, documents="file", errors=errors), "")
        passage = readers.json_object(passage, file, 1)
        try:
            asked = list(zip(passage["questions"], passage["options"], passage["answers"], strict=True))
            article = passage["article"]
        except (KeyError, TypeError, ValueError) as e:
            raise FormatError(f"'{file}' is no passage of RACE: {type(e).__name__}: {e}") from None
        for question, options, answer in asked:
            label = number_of(answer, "ABCD"[: len(options)], file, 1)
            yield {
                "context": article,
                "question": question,
                "choices": options,
                "label": label,
                "level": file.parent.name,
            }


def conll(columns: Sequence[str | None]) -> Read:
    return lambda path, errors: readers.read_conll(path, columns, errors=errors)


def parts_of_speech(path: pathlib.Path, errors: str) -> Iterator[Record]:
    """Tokens and universal tags of a CoNLL-U file."""
    for sentence in readers.read_conllu(path, errors=errors):
        yield {"tokens": sentence["tokens"], "tags": sentence["upos"]}


def squad(path: pathlib.Path, errors: str) -> Iterator[Record]:
    return readers.read_squad(path, errors=errors)


def last_word(path: pathlib.Path, errors: str) -> Iterator[Record]:
    """LAMBADA: a passage to a line, as text or as JSON with the key text; its last word is the answer."""
    is_json = ".jsonl" in path.suffixes
    for number, line in lines(path, errors):
        if is_blank(line):
            continue
        text = (
            readers.text_field(readers.json_object(line, path, number), "text", path, f"line {number}")
            if is_json
            else line
        )
        context, _, answer = text.rstrip().rpartition(" ")
        if not context:
            raise wrong(path, number, f"a passage of at least two words expected, got {text[:60]!r}")
        yield {"context": context, "answers": [answer]}


def cloze_book(path: pathlib.Path, errors: str) -> Iterator[Record]:
    """Children's Book Test: 20 numbered sentences, then `21 question<tab>answer<tab><tab>choice|choice|...`."""
    gathered: list[str] = []
    for number, line in lines(path, errors):
        if is_blank(line):
            continue
        count, _, rest = line.partition(" ")
        if count != str(len(gathered) + 1):
            raise wrong(path, number, f"line {len(gathered) + 1} of a passage expected, got {line[:60]!r}")
        if len(gathered) < 20:
            gathered.append(rest)
            continue
        fields = rest.split("\t")
        options = fields[-1].split("|")
        if len(fields) != 4 or fields[1] not in options:
            raise wrong(
                path, number, f"question, answer and choices with the answer among them expected, got {line[:80]!r}"
            )
        label = options.index(fields[1])
        yield {"context": " ".join(gathered), "question": fields[0], "choices": options, "label": label}
        gathered = []
    if gathered:
        raise FormatError(f"'{path}' ends inside a passage, behind its line {len(gathered)}")


def questions(classes: Sequence[str]) -> Read:
    """TREC: `COARSE:fine question` in a line, labelled by the one or, if the classes have a colon, by both. The published file is Latin-1; copies may be UTF-8."""

    def read(path: pathlib.Path, errors: str) -> Iterator[Record]:
        with opened(path) as f:
            for number, raw in enumerate(f, 1):
                try:
                    line = raw.decode("utf-8")
                except UnicodeDecodeError:
                    line = raw.decode("latin-1")
                if is_blank(line):
                    continue
                label, _, text = line.strip().partition(" ")
                coarse, colon, _ = label.partition(":")
                if not (coarse and colon and text):
                    raise wrong(path, number, f"COARSE:fine and a question expected, got {line[:60]!r}")
                yield {"text": text, "label": number_of(label if ":" in classes[0] else coarse, classes, path, number)}

    return read


def folders(classes: Sequence[str]) -> Read:
    """A folder for each class, a text file for each example."""

    def read(path: pathlib.Path, errors: str) -> Iterator[Record]:
        for label, name in enumerate(classes):
            if not (path / name).is_dir():
                raise FileNotFoundError(f"'{path}' has no folder {name}")
            for file in sorted((path / name).glob("*.txt")):
                text = next(readers.read_text(file, documents="file", errors=errors), "")
                yield {"text": text, "label": label, "id": file.stem}

    return read


def parallel(one: pathlib.Path, other: pathlib.Path, errors: str) -> Iterator[Record]:
    """Two files with as many sentences each: plain text, WMT's .sgm, IWSLT's .xml and train.tags."""
    pairs = itertools.zip_longest(_segments(one, errors), _segments(other, errors))
    for source, target in pairs:
        if source is None or target is None:
            raise FormatError(f"'{one}' and '{other}' do not have as many sentences each")
        yield {"source": source[1], "target": target[1]}


_SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.IGNORECASE)


def _segments(path: pathlib.Path, errors: str) -> Iterator[tuple[int, str]]:
    if {".sgm", ".xml"} & set(path.suffixes):
        for number, line in lines(path, errors):
            for text in _SEGMENT.findall(line):
                yield number, html.unescape(text).strip()
    elif path.name.startswith("train.tags"):
        yield from ((number, line.strip()) for number, line in lines(path, errors) if not line.lstrip().startswith("<"))
    else:
        yield from lines(path, errors)


def columns_of_pairs(path: pathlib.Path, errors: str) -> Iterator[Record]:
    """Tatoeba's sentence pairs: source and target separated by a tab; a third column is not read."""
    for number, line in lines(path, errors):
        fields = line.split("\t")
        if len(fields) < 2:
            raise wrong(path, number, f"two columns separated by a tab expected, got {line[:60]!r}")
        yield {"source": fields[0], "target": fields[1]}
