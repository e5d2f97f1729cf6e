"""How the files of tasks become records: small functions over the readers,
each of which is or makes a Layout.

Field names are the same for all tasks: text and pair with label; context, question, choices with label, or
with answers; tokens with tags; source with target. A label is the number of its class, or a float; None where
the file keeps it back.
"""

from __future__ import annotations

import dataclasses
import html
import itertools
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from plmcore._core import FormatError
from plmcore.data import columns, readers
from plmcore.data.readers import Record, wrong
from plmcore.files.text import Path, is_blank, lines, opened


@dataclasses.dataclass(frozen=True)
class Layout:
    """A form of files: layout(path, errors) gives the records of one. Parallel texts are two files."""

    read: Callable[..., Iterator[Record]]
    suits: Callable[[Path], bool] = lambda path: True  # what its first record does not show

    def __call__(self, *paths_and_errors: Any, **errors: str) -> Iterator[Record]:
        return self.read(*paths_and_errors, **errors)

    def fits(self, *paths: Path) -> bool:
        """Whether files, whatever their names, have this form: whether their first record can be read."""
        try:
            return next(self.read(*paths, "replace"), None) is not None and self.suits(paths[0])
        except (FormatError, FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return False


def table(
    fields: Mapping[str, str],
    *,
    label: str = "label",
    classes: Sequence[str] | None = None,
    skip: str | None = None,
    **options: Any,
) -> Layout:
    """Columns of a TSV or CSV file: {"text": "sentence"} reads column sentence as field text.

    Without `classes` the label is a float.

    A file without the column `label` has records with label None, and those with the label `skip` are left
    out. `options` go to read_table.
    """

    def rows(path: Path, errors: str) -> Iterator[tuple[int, Record]]:
        return readers.numbered_table(path, errors=errors, **options)

    return _labelled_layout(rows, fields, label, classes, skip)


def jsonl(
    fields: Mapping[str, str],
    *,
    label: str = "label",
    classes: Sequence[str] | None = None,
    skip: str | None = None,
) -> Layout:
    """The same for JSONL."""

    def rows(path: Path, errors: str) -> Iterator[tuple[int, Record]]:
        return readers.numbered_jsonl(path, errors=errors)

    return _labelled_layout(rows, fields, label, classes, skip)


def _labelled_layout(
    rows: Callable[[Path, str], Iterator[tuple[int, Record]]],
    fields: Mapping[str, str],
    label: str,
    classes: Sequence[str] | None,
    skip: str | None,
) -> Layout:
    def suits(path: Path) -> bool:
        """A label of another name would be missed."""
        _, row = next(rows(path, "replace"))
        return label in row or columns.column(row, "label") is None

    return Layout(
        lambda path, errors: _labelled(path, rows(path, errors), fields, label, classes, skip), suits
    )


def _labelled(
    path: Path,
    records: Iterator[tuple[int, Record]],
    fields: Mapping[str, str],
    label: str,
    classes: Sequence[str] | None,
    skip: str | None,
) -> Iterator[Record]:
    for number, record in records:
        found: Record = {
            name: readers.text_field(record, column, path, f"line {number}")
            for name, column in fields.items()
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
) -> Layout:
    """A table of contexts (the columns joined by spaces) with endings to choose from;
    labels count from `first`.
    """

    def read(path: Path, errors: str) -> Iterator[Record]:
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

    return Layout(read)


def _race(path: Path, errors: str) -> Iterator[Record]:
    """RACE: a folder with a folder for each level, in them a JSON file for each passage;
    or one level, or one passage.
    """
    path = pathlib.Path(path)
    for file in sorted([*path.glob("*/*.txt"), *path.glob("*.txt")]) if path.is_dir() else [path]:
        text = next(readers.read_text(file, documents="file", errors=errors), "")
        passage = readers.json_object(text, file, 1)
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


race = Layout(_race)


def conll(names: Sequence[str | None]) -> Layout:
    """Sentences of a column file."""
    return Layout(lambda path, errors: readers.read_conll(path, names, errors=errors))


def _parts_of_speech(path: Path, errors: str) -> Iterator[Record]:
    """Tokens and universal tags of a CoNLL-U file."""
    for sentence in readers.read_conllu(path, errors=errors):
        yield {"tokens": sentence["tokens"], "tags": sentence["upos"]}


parts_of_speech = Layout(_parts_of_speech)
squad = Layout(lambda path, errors: readers.read_squad(path, errors=errors))


def _last_word(path: Path, errors: str) -> Iterator[Record]:
    """LAMBADA: a passage to a line, as text or as JSON with the key text; its last word is the answer."""
    is_json = ".jsonl" in pathlib.Path(path).suffixes
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


last_word = Layout(_last_word)


def _cloze_book(path: Path, errors: str) -> Iterator[Record]:
    """Children's Book Test: 20 numbered sentences, then `21 question<tab>answer<tab><tab>choice|...`."""
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
                path,
                number,
                f"question, answer and choices with the answer among them expected, got {line[:80]!r}",
            )
        label = options.index(fields[1])
        yield {"context": " ".join(gathered), "question": fields[0], "choices": options, "label": label}
        gathered = []
    if gathered:
        raise FormatError(f"'{path}' ends inside a passage, behind its line {len(gathered)}")


cloze_book = Layout(_cloze_book)


def questions(classes: Sequence[str]) -> Layout:
    """TREC: `COARSE:fine question` in a line, labelled by the one or, if the classes have a colon, by both.

    The published file is Latin-1; copies may be UTF-8.
    """

    def read(path: Path, errors: str) -> Iterator[Record]:
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
                yield {
                    "text": text,
                    "label": number_of(label if ":" in classes[0] else coarse, classes, path, number),
                }

    return Layout(read)


_LEAF = re.compile(r"\(\d ([^()\s]+)\)")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")"}


def sentiment_trees(numbers: Mapping[str, int]) -> Layout:
    """The Stanford Sentiment Treebank: `(3 (2 It) (4 works))`, a tree to a line.

    `numbers`: the class of a whole tree's mark; others are left out.
    """

    def read(path: Path, errors: str) -> Iterator[Record]:
        for number, line in lines(path, errors):
            if is_blank(line):
                continue
            words, mark = _LEAF.findall(line), line.strip()[1:2]
            if not words or mark not in ("0", "1", "2", "3", "4"):
                raise wrong(path, number, f"a tree with marks from 0 to 4 expected, got {line[:60]!r}")
            if mark in numbers:
                yield {
                    "text": " ".join(str(_BRACKETS.get(word, word)) for word in words),
                    "label": numbers[mark],
                }

    return Layout(read)


def _ontonotes(path: Path, errors: str) -> Iterator[Record]:
    """OntoNotes 5.0 in CoNLL-2012's columns: words, parts of speech and named entities as BIO tags, of a file
    or of all *gold_conll below a folder.
    """
    path = pathlib.Path(path)
    english = path / "data" / "english"  # beside other languages
    inside = sorted((english if english.is_dir() else path).rglob("*gold_conll"))
    for file in inside if path.is_dir() else [path]:
        rows: list[list[str]] = []
        for number, line in itertools.chain(lines(file, errors), [(0, "")]):
            if line.startswith("#"):
                continue
            if line.strip():
                rows.append(line.split())
                if len(rows[-1]) < 12:
                    raise wrong(
                        file, number, f"12 columns or more expected, got {len(rows[-1])}: {line[:80]!r}"
                    )
            elif rows:
                marks = [row[10] for row in rows]
                yield {"tokens": [r[3] for r in rows], "pos": [r[4] for r in rows], "tags": _bracketed(marks)}
                rows = []


def _bracketed(marks: Sequence[str]) -> list[str]:
    """`(GPE*`, `*`, `*)` as B-GPE, I-GPE, I-GPE."""
    tags, kind = [], ""
    for mark in marks:
        begins = mark.startswith("(")
        kind = mark.strip("(*)") if begins else kind
        tags.append(f"{'B' if begins else 'I'}-{kind}" if kind else "O")
        if mark.endswith(")"):
            kind = ""
    return tags


ontonotes = Layout(_ontonotes)


def folders(classes: Sequence[str]) -> Layout:
    """A folder for each class, a text file for each example."""

    def read(path: Path, errors: str) -> Iterator[Record]:
        for label, name in enumerate(classes):
            inside = pathlib.Path(path) / name
            if not inside.is_dir():
                raise FileNotFoundError(f"'{path}' has no folder {name}")
            for file in sorted(inside.glob("*.txt")):
                text = next(readers.read_text(file, documents="file", errors=errors), "")
                yield {"text": text, "label": label, "id": file.stem}

    return Layout(read)


def _parallel(one: Path, other: Path, errors: str) -> Iterator[Record]:
    """Two files with as many sentences each: plain text, WMT's .sgm, IWSLT's .xml and train.tags."""
    pairs = itertools.zip_longest(_segments(one, errors), _segments(other, errors))
    for source, target in pairs:
        if source is None or target is None:
            raise FormatError(f"'{one}' and '{other}' do not have as many sentences each")
        yield {"source": source[1], "target": target[1]}


parallel = Layout(_parallel)
_SEGMENT = re.compile(r"<seg[^>]*>(.*?)</seg>", re.IGNORECASE)


def _segments(path: Path, errors: str) -> Iterator[tuple[int, str]]:
    path = pathlib.Path(path)
    if {".sgm", ".xml"} & set(path.suffixes):
        for number, line in lines(path, errors):
            for text in _SEGMENT.findall(line):
                yield number, html.unescape(text).strip()
    elif path.name.startswith("train.tags"):
        yield from (
            (number, line.strip())
            for number, line in lines(path, errors)
            if not line.lstrip().startswith("<")
        )
    else:
        yield from lines(path, errors)


def _columns_of_pairs(path: Path, errors: str) -> Iterator[Record]:
    """Tatoeba's sentence pairs: source and target separated by a tab; a third column is not read.

    They have no header.
    """
    for number, line in lines(path, errors):
        fields = line.split("\t")
        if len(fields) < 2:
            raise wrong(path, number, f"two columns separated by a tab expected, got {line[:60]!r}")
        if number == 1 and fields[:2] == ["source", "target"]:
            raise wrong(path, number, "the first pair expected, got a header")
        yield {"source": fields[0], "target": fields[1]}


columns_of_pairs = Layout(_columns_of_pairs)
