"""Random numbers that belong to a run or a model."""

from __future__ import annotations

import threading
from typing import Self

from plmcore import _core
from plmcore._core import ArgumentError


class Generator:
    """A stream of random numbers.

    Inside `with generator:` this thread draws from it; afterwards it draws from its own numbers again.

        with plm.Generator(7):
            model = plm.models.build(config, "causal-lm")

    Entered again, it continues. Only one thread at a time may use it.
    """

    def __init__(self, seed: int = 0, offset: int = 0):
        self.seed, self.offset = seed, offset
        self._used = threading.Lock()

    def __enter__(self) -> Self:
        if not self._used.acquire(blocking=False):
            raise ArgumentError(
                f"{self!r} is in use: each thread, and each scope inside another, needs its own"
            )
        try:
            self._before = _core.random_state()
            _core.set_random_state(self.seed, self.offset)
        except BaseException:
            self._used.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.seed, self.offset = _core.random_state()
        _core.set_random_state(*self._before)
        self._used.release()

    def __repr__(self) -> str:
        return f"Generator(seed={self.seed}, offset={self.offset})"
