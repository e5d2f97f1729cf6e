"""The progress of long work: tqdm's bar with rate and time left, on standard error."""

from __future__ import annotations

import threading

from tqdm import tqdm


class Progress(tqdm):  # type: ignore[misc]  # tqdm has no types
    """A bar that is taken away at its end. It is shown on a terminal only, and not if `quiet`.

    `first` is what was done before. Without a total there is no time left.
    """

    monitor_interval = 0  # no thread beside the work: it may fork

    def __init__(self, total: int | None, unit: str, *, first: int = 0, quiet: bool = False):
        hidden = True if quiet else None  # None: where it is no terminal
        scaled = unit == "B"
        super().__init__(
            total=total,
            unit=unit,
            unit_scale=scaled,
            initial=first,
            disable=hidden,
            leave=False,
            dynamic_ncols=True,
            miniters=1,
        )

    def reach(self, done: int, total: int | None = None, note: str = "") -> None:
        """`done` of all that is to be done, or of `total` where that is known only now."""
        if total is not None:
            self.total = total
        if note:
            self.set_postfix_str(note, refresh=False)
        self.update(done - self.n)


Progress.set_lock(threading.RLock())  # tqdm's own is also one of processes
