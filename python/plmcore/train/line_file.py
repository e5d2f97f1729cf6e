from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence

from plmcore.files.whole import atomic_write, check_replaceable, named, open_own, read_bytes


class LineFile:
    """A file that grows by lines.

    A last line without its end, which a killed process has left, is taken away.

    `count` lines are in it; they are never read again until some of them are to go.
    """

    def __init__(self, path: pathlib.Path):
        self.path, self.count = path, 0
        check_replaceable(path)
        if path.exists():
            content = read_bytes(path)
            self.count = content.count(b"\n")
            if content and not content.endswith(b"\n"):
                self._write(self.lines())

    def append(self, line: str) -> None:
        with named(self.path), open_own(self.path, "a", encoding="utf-8") as f:
            f.write(line + "\n")
        self.count += 1 + line.count("\n")

    def lines(self) -> list[bytes]:
        """With their ends."""
        return (
            [line + b"\n" for line in read_bytes(self.path).split(b"\n")[:-1]] if self.path.exists() else []
        )

    def keep(self, lines: Sequence[bytes]) -> None:
        """These alone stay, of those that are there."""
        if len(lines) < self.count:
            self._write(lines)

    def sync(self) -> None:
        """Brings to disk what was appended."""
        if self.path.exists():
            with open_own(self.path, "a") as f:
                os.fsync(f.fileno())

    def _write(self, lines: Sequence[bytes]) -> None:
        with atomic_write(self.path) as f:
            f.writelines(lines)
        self.count = len(lines)
