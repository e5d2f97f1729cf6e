from __future__ import annotations

import threading
from collections.abc import Callable

from plmcore.train.interrupts import deferred


class Background:
    """One job at a time beside the caller. What a job raises comes out of the next run() or wait().

    A signal neither leaves a thread half started nor a job behind that wait() has not waited for.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def run(self, job: Callable[[], object]) -> None:
        self.wait()

        def body() -> None:
            try:
                job()
            except BaseException as e:
                self._error = e

        with deferred():
            self._thread = threading.Thread(target=body, name="plmcore checkpoint")
            self._thread.start()

    def wait(self) -> None:
        with deferred():
            if self._thread is not None:
                self._thread.join()
                self._thread = None
        if self._error is not None:
            error, self._error = self._error, None
            raise error
