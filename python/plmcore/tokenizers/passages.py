"""Text from files of any size, a piece at a time."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Iterator

from plmcore.files.text import bytes_read, check_errors, decoded, opened

BLOCK = 1 << 20  # bytes read at a time


def passages(
    files: Iterable[pathlib.Path],
    size: int = 1 << 14,
    errors: str = "strict",
    told: Callable[[int], None] = lambda n: None,
) -> Iterator[str]:
    """The text in pieces of whole lines, about `size` characters each;
    longer lines are cut, at a space where there is one.

    `told` hears the number of bytes read so far. errors="replace" puts U+FFFD for bytes that are not UTF-8,
    "strict" names the first.
    """
    check_errors(errors)
    done = 0
    for file in files:
        rest = ""
        with opened(file) as f:
            for block in decoded(f, BLOCK, errors, file):
                rest, at = rest + block, 0
                while len(rest) - at > size:
                    cut = rest.rfind("\n", at, at + size) + 1 or rest.rfind(" ", at + 1, at + size) or -1
                    cut = cut if cut > at else at + size
                    yield rest[at:cut]
                    at = cut
                rest = rest[at:]
                told(done + bytes_read(f))
        if rest:
            yield rest
        done += file.stat().st_size
