"""Text from files of any size, a piece at a time."""

from __future__ import annotations

import codecs
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator

from plmcore._core import ArgumentError, FormatError

BLOCK = 1 << 20  # bytes read at a time
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def files_of(paths: Paths) -> list[pathlib.Path]:
    """Files, and for folders the files in them and below, by name."""
    paths = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files: list[pathlib.Path] = []
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            files += sorted(f for f in path.rglob("*") if f.is_file() and not f.name.startswith("."))
        elif path.exists():
            files.append(path)
        else:
            raise FileNotFoundError(f"there is no file '{path}'")
    if not files:
        raise ArgumentError(f"there are no files in {', '.join(map(str, paths)) or 'an empty list'}")
    return files


def passages(
    files: Iterable[pathlib.Path],
    size: int = 1 << 14,
    errors: str = "strict",
    told: Callable[[int], None] = lambda n: None,
) -> Iterator[str]:
    """The text in pieces of whole lines, about `size` characters each; longer lines are cut, at a space where there is one.

    `told` hears the number of bytes read so far. errors="replace" puts U+FFFD for bytes that are not UTF-8, "strict" names the first.
    """
    done = 0
    for file in files:
        decoder, rest, start = codecs.getincrementaldecoder("utf-8")(errors), "", 0
        with open(file, "rb") as f:
            while True:
                block = f.read(BLOCK)
                held = len(decoder.getstate()[0])
                try:
                    rest += decoder.decode(block, final=not block)
                except UnicodeDecodeError as e:
                    raise FormatError(
                        f"'{file}': byte {start - held + e.start} (0x{e.object[e.start]:02x}) is not valid UTF-8; "
                        f"errors='replace' reads past it"
                    ) from None
                start += len(block)
                at = 0
                while len(rest) - at > size:
                    cut = rest.rfind("\n", at, at + size) + 1 or rest.rfind(" ", at + 1, at + size) or -1
                    cut = cut if cut > at else at + size
                    yield rest[at:cut]
                    at = cut
                rest = rest[at:]
                done += len(block)
                told(done)
                if not block:
                    break
        if rest:
            yield rest


def decoded(line: bytes, source: object) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as e:
        raise FormatError(f"'{source}': byte {e.start} (0x{line[e.start]:02x}) is not valid UTF-8") from None
