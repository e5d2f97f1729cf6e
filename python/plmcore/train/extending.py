"""Runs that are made longer: --resume with more steps or epochs than before.

`train.extended` has the former ends, the first one first, as {steps = 100} or {epochs = 3}. Up to a former
end the schedule is that of a run which ends there, so that the steps until then have the bits of that run;
from there on it is that of the next end. What is due after the last step of a run, a line of metrics, an
evaluation, a checkpoint, is due after each of them.
"""

from __future__ import annotations

import bisect
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plmcore._core import ArgumentError, FormatError
from plmcore.train import checkpoint, settings
from plmcore.train.schedules import Schedule
from plmcore.train.settings import SettingError, Settings

KEYS = ("train.steps", "train.epochs")  # may grow when a run goes on
# may differ then
HARMLESS = ("run.device", "train.save_every", "train.keep", "train.log_every", "train.tensorboard")

End = dict[str, int]


def resumed(
    begun: pathlib.Path,
    needed: Sequence[str],
    defaults: Callable[[Settings], Settings],
    changes: Sequence[Settings],
    files: Sequence[str],
    kinds: Mapping[str, str],
) -> Settings:
    """The settings of the run that the config.toml `begun` is of, with changes: of what changes no bit, of
    where its `files` are, and of its end. The others as settings.resumed takes them.
    """
    allowed = (*HARMLESS, *KEYS, *files)
    known, wanted = settings.resumed(begun, needed, defaults, changes, allowed, kinds)
    return lengthened(begun.parent, known, wanted)


def lengthened(run: pathlib.Path, known: Settings, wanted: Settings) -> Settings:
    """The wanted settings of a run that goes on, with the end of the known ones among the former ends where
    it is to be longer.
    """
    before, now = known["train"], wanted["train"]
    if now.get("epochs") != before.get("epochs") and now["steps"] == before["steps"]:
        now["steps"] = None  # the epochs that were asked for count
    old, new = end_of(before), end_of(now)
    if old == new:
        return wanted
    [(unit, value)] = new.items()
    if value <= old.get(unit, 0):
        raise SettingError(
            f"the run in '{run}' has train.{unit} = {old[unit]}, not {value}: it can only be made longer; "
            "start another one in an empty directory"
        )
    if stopped := reason_to_stop(run):
        raise ArgumentError(
            f"the run in '{run}' ended before its last step ({stopped}): more steps would not be taken; "
            "start another one, with train.patience=none or a higher one"
        )
    now["extended"] = [*now["extended"], old]
    return wanted


def end_of(table: Mapping[str, Any]) -> End:
    return {"steps": table["steps"]} if table.get("steps") else {"epochs": table["epochs"]}


def reason_to_stop(run: pathlib.Path) -> str | None:
    """Why a run ended before its last step, if it did."""
    for path in reversed(checkpoint.steps_in(run / "checkpoints")):
        try:
            stopped: str | None = checkpoint.read_part(path / checkpoint.STATE).get("stopped")
        except (FormatError, OSError):  # a damaged one is left aside, also when the run goes on
            continue
        return stopped
    return None


def ends(table: Mapping[str, Any], steps: int, per_epoch: int | None = None) -> list[int]:
    """The steps that a run of `steps` steps was to have before it was made longer, as train.extended says."""
    found = []
    for end in table["extended"]:
        units = ("steps",) if per_epoch is None else ("steps", "epochs")
        [(unit, value)] = end.items() if isinstance(end, dict) and len(end) == 1 else [("", 0)]
        if unit not in units or not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise SettingError(f"train.extended must have tables as {{steps = 100}}, got {end!r}")
        found.append(value if unit == "steps" or per_epoch is None else value * per_epoch)
    if any(b <= a for a, b in zip(found, [*found[1:], steps])):
        raise SettingError(
            f"train.extended: the run was made longer after {' and '.join(map(str, found))} steps, and "
            f"has {steps}: "
            "it must have more each time"
        )
    return found


def schedule(made: Callable[[int], Schedule], former: Sequence[int], steps: int) -> Schedule:
    """`made(n)` is the schedule of a run of n steps; this is that of the first end not behind."""
    parts = [made(n) for n in (*former, steps)]
    return lambda step: parts[bisect.bisect_right(former, step)](step)
