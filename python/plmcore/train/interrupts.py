from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Self

from plmcore.runtime import startup

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):
    """A signal stopped the run between two steps. Everything is saved."""

    def __init__(self, step: int, number: int):
        super().__init__(f"stopped by {signal.Signals(number).name} after step {step}")
        self.step, self.exit_code = step, 128 + number


class Interrupts:
    """Inside, the first SIGINT or SIGTERM is kept for the loop to see; a second SIGINT stops at once, and
    those after it say nothing new.

    Signals reach the main thread only: elsewhere nothing is changed.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._stops = False

    def __enter__(self) -> Self:
        self._before = {}
        if in_main_thread():
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self.number is not None:
            startup.work_ended()  # the command was told to stop, and need not be told again

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.number is None:
            self.number = number
        elif number == signal.SIGINT and not self._stops:
            self._stops = True
            raise KeyboardInterrupt


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Signals that come inside are answered at the end.

    For what must not be left half done: a thread that is started but not known to its owner, a checkpoint
    that is being written when the directory is given free.
    """
    if not in_main_thread():
        yield
        return
    came: list[signal.Signals] = []
    before = {
        number: signal.signal(number, lambda n, _: came.append(signal.Signals(n))) for number in SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
