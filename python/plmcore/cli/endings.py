"""How a training command ends: done, stopped, or with one line that says why."""

from __future__ import annotations

import pathlib
import shlex
import sys
from collections.abc import Callable

from plmcore import FormatError


def run(command: str, out: pathlib.Path, work: Callable[[], object], resume: str | None = None) -> int:
    """The exit status of `work`, which trains in `out`; after a signal it says how to go on, by the command `resume` or the same one."""
    from plmcore.train import Interrupted, NonFiniteError

    again = shlex.join(["plmcore", resume or command, "--out", str(out), "--resume"])
    try:
        work()
    except Interrupted as e:
        print(f"\n{e}; everything is saved. To go on: {again}", file=sys.stderr)
        return e.exit_code
    except KeyboardInterrupt:
        print(f"\nstopped at once. To go on from the last checkpoint: {again}", file=sys.stderr)
        return 130
    except (FormatError, ValueError, OSError, ImportError, NonFiniteError) as e:
        print(f"plmcore {command}: {e}", file=sys.stderr)
        return 1
    return 0
