"""How a training command ends: done, stopped, or with one line that says why."""

from __future__ import annotations

import contextlib
import pathlib
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator

from plmcore import startup
from plmcore.cli.arguments import ERRORS


class Terminated(KeyboardInterrupt):
    """SIGTERM while there was no step to finish."""


def run(command: str, out: pathlib.Path, work: Callable[[], object], resume: str | None = None) -> int:
    """The exit status of `work`, which trains in `out`; after a signal it says how to go on, by the command `resume` or the same one."""
    from plmcore.train import DivergedError, Interrupted, NonFiniteError

    again = shlex.join(["plmcore", resume or command, "--out", str(out), "--resume"])
    try:
        with terminable():
            work()
    except Interrupted as e:
        startup.work_ended()
        print(f"\n{e}; everything is saved. To continue: {again}", file=sys.stderr)
        return e.exit_code
    except KeyboardInterrupt as e:
        startup.work_ended()
        print(f"\nstopped at once. To continue from the last checkpoint: {again}", file=sys.stderr)
        return 128 + (signal.SIGTERM if isinstance(e, Terminated) else signal.SIGINT)
    except (*ERRORS, ValueError, OSError, ImportError, NonFiniteError, DivergedError) as e:
        print(f"plmcore {command}: {e}", file=sys.stderr)
        return 1
    return 0


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Inside, SIGTERM is an exception, as SIGINT is; the training loop has its own way with both."""

    def stop(number: int, frame: object) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
