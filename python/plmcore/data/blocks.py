"""Input files cut into blocks that can be tokenised apart from each other, without a look at more than one
block at a time.

Where blocks end depends on the files alone, so that a corpus is the same for any number of workers.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from plmcore.data import readers
from plmcore.files.text import bytes_read, opened

SIZE = 4 << 20  # bytes of a block, more only where a line is longer
RECORDS = 1024  # documents of a block of records
LINES = (".jsonl", ".ndjson")
TABLES = (".csv", ".tsv")


class Block(NamedTuple):
    path: str
    kind: str  # "text": bytes; "jsonl": bytes, an object to a line; "records": a list of texts
    data: bytes | list[str]
    line: int  # the number of the first line, from 1
    at: int  # its byte
    continues: bool  # begins inside a document
    read: int  # bytes of the file that have been read so far, of the packed one if it is packed


def blocks(path: pathlib.Path, documents: str, field: str, errors: str) -> Iterator[Block]:
    """The blocks of a file, whose name tells its format: .jsonl, .csv, .tsv, .parquet, else text.

    All may end in .gz.
    """
    suffix = format_of(path)
    if suffix in LINES:
        return _cut(path, "jsonl", "line")
    if suffix in TABLES:
        return _records(path, field, readers.read_table(path, errors=errors))
    if suffix == ".parquet":
        return _records(path, field, readers.read_parquet(path, columns=[field]))
    return _cut(path, "text", documents)


def format_of(path: pathlib.Path) -> str:
    """The end of a name that tells the format."""
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix


def _cut(path: pathlib.Path, kind: str, documents: str) -> Iterator[Block]:
    """Cuts at the last blank line (documents="blank") or behind the last line ("line"); where there is none,
    or for "file", before a line break.
    """
    with opened(path) as f:
        line, at, continues = 1, 0, False
        buffer = bytearray()
        while True:
            searched = len(buffer)
            chunk = f.read(SIZE)
            buffer += chunk
            if len(chunk) < SIZE:
                break
            end, inside = _place(buffer, documents, searched)
            if end:
                data = bytes(buffer[:end])
                yield Block(str(path), kind, data, line, at, continues, bytes_read(f))
                del buffer[:end]
                line, at, continues = line + data.count(b"\n"), at + end, inside
        if buffer:
            yield Block(str(path), kind, bytes(buffer), line, at, continues, bytes_read(f))


def _place(buffer: bytearray, documents: str, searched: int) -> tuple[int, bool]:
    """Where to cut a buffer (0: nowhere), and if that is inside a document."""
    last = buffer.rfind(b"\n", searched)
    if documents == "line":
        return last + 1, False
    if last <= 0:
        return 0, False
    if documents == "blank":
        end = last
        while (begin := buffer.rfind(b"\n", 0, end)) >= 0:
            if not buffer[begin:end].strip():
                return end + 1, False
            end = begin
    return last, True


def _records(path: pathlib.Path, field: str, records: Iterable[readers.Record]) -> Iterator[Block]:
    texts: list[str] = []
    first = size = 0
    for number, record in enumerate(records):
        texts.append(readers.text_field(record, field, path, f"record {number}"))
        size += len(texts[-1])
        if len(texts) == RECORDS or size >= SIZE:
            yield Block(str(path), "records", texts, first, 0, False, 0)
            first, size, texts = number + 1, 0, []
    if texts:
        yield Block(str(path), "records", texts, first, 0, False, os.path.getsize(path))
