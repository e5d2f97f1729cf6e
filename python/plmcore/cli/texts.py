"""Texts that commands read: given among the arguments, in a file, or on standard input."""

from __future__ import annotations

import contextlib
import itertools
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, TypeVar

from plmcore._core import ArgumentError, FormatError
from plmcore.files.text import ADVICE, bytes_read, lines_of, opened

T = TypeVar("T")
STANDARD_INPUT = "-"


def name_of(file: str | pathlib.Path) -> str:
    return "standard input" if str(file) == STANDARD_INPUT else str(file)


@contextlib.contextmanager
def source(file: str | pathlib.Path) -> Iterator[BinaryIO]:
    """The bytes of a file, which may be packed, or for - of standard input."""
    if str(file) == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    with opened(file) as f:
        yield f


def lines(file: str, errors: str, fields: Sequence[str] = ()) -> Iterator[Any]:
    """The text of each line, or a list of the texts that the JSON object in each line has in `fields`; under
    a bar of the bytes that have been read.
    """
    from plmcore.data import readers
    from plmcore.runtime.progress import Progress

    name = name_of(file)
    with source(file) as f:
        size = None if file == STANDARD_INPUT else pathlib.Path(file).stat().st_size
        with Progress(size, "B", quiet=size is None) as bar:
            for number, line in lines_of(f, errors, name):
                if fields:
                    record = readers.json_object(line, name, number)
                    yield [readers.text_field(record, field, name, f"line {number}") for field in fields]
                else:
                    yield line
                if size is not None and number % 64 == 0:
                    bar.reach(bytes_read(f))


def given(arguments: Sequence[str], errors: str, fields: Sequence[str] = ()) -> Iterator[Any]:
    """What a command is given: its arguments, the `lines` of those that name a file, or without any those of
    standard input.
    """
    for text in arguments or [STANDARD_INPUT]:
        if text == STANDARD_INPUT or is_file(text):
            yield from lines(text, errors, fields)
        elif fields:
            raise FileNotFoundError(f"there is no file '{text}', and --field is for the lines of one")
        else:
            yield argument(text, errors)


def is_file(text: str) -> bool:
    """Whether an argument names a file.

    What looks like one that is not there is an error: its name is hardly the text that was meant.
    """
    if "\n" in text or "\0" in text or len(text) > 1024:
        return False
    try:
        if pathlib.Path(text).is_file():
            return True
    except (OSError, ValueError):
        return False
    suffix = pathlib.Path(text).suffix
    if suffix in (".txt", ".jsonl", ".json", ".tsv", ".csv", ".gz") and not any(c.isspace() for c in text):
        raise FileNotFoundError(f"there is no file '{text}'")
    return False


def argument(text: str, errors: str) -> str:
    """A text among the arguments.

    Bytes that are not UTF-8 arrive as lone surrogates, which no tokenizer takes.
    """
    try:
        text.encode()
    except UnicodeEncodeError as e:
        if errors == "replace":
            return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        raise FormatError(f"the text {text!r}, character {e.start}: it is not UTF-8; {ADVICE}") from None
    return text


def grouped(texts: Iterator[T], size: int) -> Iterator[list[T]]:
    if size < 1:
        raise ArgumentError(f"--batch must be at least 1, got {size}")
    while some := list(itertools.islice(texts, size)):
        yield some
