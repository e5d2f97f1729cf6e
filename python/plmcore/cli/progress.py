from __future__ import annotations

import sys
import time
from typing import Any


class Progress:
    """One line that is rewritten: position, rate, time left. Silent when the output is not a terminal. `first`: what was done before. Without a total
    there is no time left."""

    def __init__(self, total: int | None, unit: str = "step", out: Any = None, first: int = 0):
        self.out = sys.stderr if out is None else out
        self.total, self.unit, self.first = total, unit, first
        self.start = self.shown = time.monotonic()
        self.active = self.out.isatty()

    def update(self, done: int, note: str = "") -> None:
        now = time.monotonic()
        if not self.active or (now - self.shown < 0.1 and (self.total is None or done < self.total)):
            return
        self.shown = now
        rate = (done - self.first) / max(now - self.start, 1e-9)
        of, time_left = "", ""
        if self.total is not None:
            left = int((self.total - done) / max(rate, 1e-9))
            of, time_left = f"/{self.total}", f"  {left // 60}:{left % 60:02d} left"
        self.out.write(f"\r\x1b[K{self.unit} {done}{of}  {note}  {rate:.1f} {self.unit}s/s{time_left}")
        self.out.flush()

    def clear(self) -> None:
        """Takes the line away, for other output."""
        if self.active:
            self.out.write("\r\x1b[K")
            self.out.flush()
