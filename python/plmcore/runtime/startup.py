"""Ctrl-C while the command plmcore starts, and after it was answered.

Nothing is imported here but what Python has loaded anyway.
"""

from __future__ import annotations

import os
import signal
import sys

STOPPED = 128 + signal.SIGINT


def is_command() -> bool:
    """Whether this process is the command, by its name or as `python -m plmcore`, and not a program that
    imports plmcore.
    """
    words = list(getattr(sys, "orig_argv", ()))
    named = os.path.basename(sys.argv[0]) == "plmcore" if getattr(sys, "argv", None) else False
    return (
        named
        or "-mplmcore" in words[1:4]
        or any(pair == ("-m", "plmcore") for pair in zip(words[1:4], words[2:5]))
    )


def leave_at_once() -> None:
    """Until the command begins its work there is nothing to save: Ctrl-C ends it with one line."""
    if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def work_begins() -> None:
    """From here on Ctrl-C is an exception, which the work answers."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def work_ended() -> None:
    """What is left is to say how it ended and to give memory back:
    another Ctrl-C must not add a traceback to it.
    """
    if is_command() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave(number: int, frame: object) -> None:
    os.write(2, b"\nplmcore: stopped\n")
    os._exit(STOPPED)


leave_at_once()
