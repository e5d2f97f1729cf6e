from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Self


class Interrupted(Exception):
    """A signal stopped the run between two steps. Everything is saved."""

    def __init__(self, step: int, number: int):
        super().__init__(f"stopped by {signal.Signals(number).name} after step {step}")
        self.step, self.exit_code = step, 128 + number


class Interrupts:
    """Inside, the first SIGINT or SIGTERM is kept for the loop to see; a second SIGINT stops at once.

    Signals reach the main thread only: elsewhere nothing is changed.
    """

    def __init__(self) -> None:
        self.number: int | None = None

    def __enter__(self) -> Self:
        self._before = {}
        if threading.current_thread() is threading.main_thread():
            self._before = {n: signal.signal(n, self._note) for n in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.number = number
