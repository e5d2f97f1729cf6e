"""Text files: found in folders, opened plain or compressed, decoded with the place of what is wrong."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import os
import pathlib
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

from plmcore._core import ArgumentError, FormatError

BOM = b"\xef\xbb\xbf"
GZIP = b"\x1f\x8b"
ADVICE = 'the option --errors replace, in Python errors="replace", reads it as U+FFFD'
_SURROGATE = re.compile("[\ud800-\udfff]")

Path = str | os.PathLike[str]


def files_in(inputs: Path | Iterable[Path]) -> list[pathlib.Path]:
    """The files of a list of files and folders; those of a folder and below by name, hidden ones left out."""
    inputs = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    found: list[pathlib.Path] = []
    for given in map(pathlib.Path, inputs):
        if given.is_dir():
            inside = sorted(p for p in given.rglob("*") if p.is_file())
            found += [
                p for p in inside if not any(part.startswith(".") for part in p.relative_to(given).parts)
            ]
        elif given.exists():
            found.append(given)
        else:
            raise FileNotFoundError(f"there is no file or folder '{given}'")
    if not found:
        raise FileNotFoundError(
            f"there are no files in {', '.join(map(repr, map(str, inputs))) or 'an empty list'}"
        )
    return found


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked where it begins like a gzip file."""
    with open(path, "rb") as f:
        packed = f.peek(2)[:2] == GZIP
        try:
            with gzip.GzipFile(fileobj=f) if packed else contextlib.nullcontext(f) as unpacked:
                yield cast(BinaryIO, unpacked)
        except (EOFError, gzip.BadGzipFile, zlib.error) as e:
            raise FormatError(f"'{os.fspath(path)}' cannot be unpacked: {e}") from None


def bytes_read(f: BinaryIO) -> int:
    """How much of an opened file has been read, of the packed one if it is packed."""
    return getattr(f, "fileobj", f).tell()


def decode(data: bytes, errors: str, path: Path, line: int, at: int) -> str:
    """UTF-8 to text. `line` and `at` are the place of `data` in the file, for the message."""
    if at == 0:
        data = data.removeprefix(BOM)
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as e:
        raise _not_text(e, path, line, at) from None


def decoded(f: BinaryIO, size: int, errors: str, path: Path) -> Iterator[str]:
    """The text of an opened file, of about `size` bytes at a time."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    at, line = 0, 1  # of the bytes that the decoder has not given out yet
    while True:
        block = f.read(size)
        held = decoder.getstate()[0]
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as e:
            raise _not_text(e, path, line, at) from None
        if text:
            yield text.removeprefix("\ufeff") if at == 0 else text
        if not block:
            return
        at += len(held) + len(block) - len(decoder.getstate()[0])
        line += block.count(b"\n")


def lines(path: Path, errors: str = "strict") -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, from 1, without their ends (\\n or \\r\\n)."""
    check_errors(errors)
    with opened(path) as f:
        yield from lines_of(f, errors, path)


def lines_of(f: Iterable[bytes], errors: str, source: Path) -> Iterator[tuple[int, str]]:
    """The same of an opened file."""
    at = 0
    for number, raw in enumerate(f, 1):
        yield number, decode(raw, errors, source, number, at).removesuffix("\n").removesuffix("\r")
        at += len(raw)


def whole(text: str, errors: str, path: Path, where: str) -> str:
    """A text from JSON escapes, which may hold one half of a surrogate pair: no UTF-8 has that, and no
    tokenizer takes it.
    """
    half = None if text.isascii() else _SURROGATE.search(text)
    if half is None:
        return text
    if errors == "replace":
        return _SURROGATE.sub("\ufffd", text)
    raise FormatError(
        f"'{os.fspath(path)}', {where}: half of a surrogate pair (U+{ord(half[0]):04X}) at character "
        f"{half.start()}; "
        f"{ADVICE}"
    )


def check_text(inputs: Path | Iterable[Path]) -> None:
    """ArgumentError where files and folders have nothing but blanks: there is nothing to learn from them."""
    files = files_in(inputs)
    for path in files:
        if not path.is_file():  # a pipe is read once
            return
        with opened(path) as f:
            if any(text.strip() for text in decoded(f, 1 << 16, "replace", path)):
                return
    shown = ", ".join(f"'{path}'" for path in files[:5]) + (
        f" and {len(files) - 5} more files" if len(files) > 5 else ""
    )
    raise ArgumentError(f"there is no text in {shown}: nothing, or blanks alone")


def is_blank(line: str) -> bool:
    return not line.strip(" \t\r\n\f\v")


def check_errors(errors: str) -> None:
    if errors not in ("strict", "replace"):
        raise ArgumentError(f"errors must be 'strict' or 'replace', got {errors!r}")


def _not_text(e: UnicodeDecodeError, path: Path, line: int, at: int) -> FormatError:
    data = e.object
    hint = "; it looks like UTF-16" if at == 0 and data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
    line += data.count(b"\n", 0, e.start)
    return FormatError(
        f"'{os.fspath(path)}', line {line}, byte {at + e.start}: 0x{data[e.start]:02x} is not UTF-8 "
        f"({e.reason}){hint}; {ADVICE}"
    )
