"""How a training command ends: done, stopped, or with one line that says why."""

from __future__ import annotations

import contextlib
import pathlib
import shlex
import signal
import sys
from collections.abc import Callable, Iterator

from plmcore.cli.arguments import ERRORS
from plmcore.runtime import startup


class Terminated(KeyboardInterrupt):
    """SIGTERM while there was no step to finish."""


def run(command: str, out: pathlib.Path, work: Callable[[], object], resume: str | None = None) -> int:
    """The exit status of `work`, which trains in `out`; after a signal it says how to go on, by the command
    `resume` or the same one.
    """
    from plmcore.train import DivergedError, Interrupted, NonFiniteError

    again = shlex.join(["plmcore", resume or command, "--out", str(out), "--resume"])
    with stoppable():
        try:
            work()
        except Interrupted as e:
            print(f"\n{e}; everything is saved. To continue: {again}", file=sys.stderr)
            return e.exit_code
        except KeyboardInterrupt as e:
            print(f"\nstopped at once. To continue from the last checkpoint: {again}", file=sys.stderr)
            return 128 + (signal.SIGTERM if isinstance(e, Terminated) else signal.SIGINT)
        except (*ERRORS, ValueError, OSError, ImportError, NonFiniteError, DivergedError) as e:
            print(f"plmcore {command}: {e}", file=sys.stderr)
            return 1
    return 0


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Inside, the first SIGINT or SIGTERM is an exception; those after it are ignored, so that the answer is
    given in peace. The training loop has its own way with both.
    """

    from plmcore.train.interrupts import SIGNALS, in_main_thread

    def stop(number: int, frame: object) -> None:
        for other in SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    if not in_main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        startup.work_ended()
        for number, handler in before.items():
            if not startup.is_command():
                signal.signal(number, handler)
