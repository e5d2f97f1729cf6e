"""Text files: opened plain or compressed, decoded with the place of what is wrong."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from plmcore._core import FormatError

BOM = b"\xef\xbb\xbf"
GZIP = b"\x1f\x8b"
_SURROGATE = re.compile("[\ud800-\udfff]")

Path = str | os.PathLike[str]


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked where it begins like a gzip file."""
    with open(path, "rb") as f:
        packed = f.peek(2)[:2] == GZIP
        try:
            with gzip.GzipFile(fileobj=f) if packed else contextlib.nullcontext(f) as unpacked:
                yield unpacked
        except (EOFError, gzip.BadGzipFile, zlib.error) as e:
            raise FormatError(f"'{os.fspath(path)}' cannot be unpacked: {e}") from None


def decode(data: bytes, errors: str, path: Path, line: int, at: int) -> str:
    """UTF-8 to text. `line` and `at` are the place of `data` in the file, for the message."""
    if at == 0:
        data = data.removeprefix(BOM)
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as e:
        hint = "; it looks like UTF-16" if at == 0 and data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        line += data.count(b"\n", 0, e.start)
        raise FormatError(
            f"'{os.fspath(path)}', line {line}, byte {at + e.start}: 0x{data[e.start]:02x} is not UTF-8 "
            f'({e.reason}){hint}. errors="replace" reads it as U+FFFD'
        ) from None


def lines(path: Path, errors: str = "strict") -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, from 1, without their ends (\\n or \\r\\n)."""
    check_errors(errors)
    with opened(path) as f:
        at = 0
        for number, raw in enumerate(f, 1):
            yield number, decode(raw, errors, path, number, at).removesuffix("\n").removesuffix("\r")
            at += len(raw)


def whole(text: str, errors: str, path: Path, where: str) -> str:
    """A text from JSON escapes, which may hold one half of a surrogate pair: no UTF-8 has that, and no tokenizer takes it."""
    half = None if text.isascii() else _SURROGATE.search(text)
    if half is None:
        return text
    if errors == "replace":
        return _SURROGATE.sub("\ufffd", text)
    raise FormatError(
        f"'{os.fspath(path)}', {where}: half of a surrogate pair (U+{ord(half[0]):04X}) at character {half.start()}. "
        'errors="replace" reads it as U+FFFD'
    )


def is_blank(line: str) -> bool:
    return not line.strip(" \t\r\n\f\v")


def check_errors(errors: str) -> None:
    if errors not in ("strict", "replace"):
        raise ValueError(f"errors must be 'strict' or 'replace', got {errors!r}")
