"""A run's directory:

config.toml      everything that is needed to repeat the run
metrics.jsonl    one object per line: step, loss, lr, norm, tokens, tokens_per_second, seconds; step,
                 eval_loss, ...; step, sample
log.txt          what was said of the run, with the time
sessions.txt     what was said of single sessions: when and where they began, from which step, and what was
                 wrong
checkpoints/     see plmcore.train.checkpoint
report.html      the curves, on one page
loss.svg         the curve of the loss, as a picture
final/           the model directory that the run ends with
"""

from __future__ import annotations

import copy
import fcntl
import json
import math
import os
import pathlib
import time
from collections.abc import Mapping
from typing import Any, Self

from plmcore._core import FormatError
from plmcore.files.whole import atomic_write, open_own, read_bytes, remove
from plmcore.runtime.progress import Progress
from plmcore.train import checkpoint, report
from plmcore.train.background import Background
from plmcore.train.line_file import LineFile

CONFIG, METRICS, LOG, SESSIONS, REPORT, PICTURE, FINAL, CHECKPOINTS = (
    "config.toml",
    "metrics.jsonl",
    "log.txt",
    "sessions.txt",
    "report.html",
    "loss.svg",
    "final",
    "checkpoints",
)
LOCK = ".lock"
TOLD = {LOCK, LOG, SESSIONS}  # what a directory may have before a run is in it
# What a run makes before its first step, from the files that it is given.
PREPARED = {
    CONFIG,
    REPORT,
    PICTURE,
    "tokenizer",
    "corpus",
    "target",
    "mixture",
    "corpus-train",
    "corpus-dev",
    "corpus-test",
    "train.table.jsonl",
    "dev.table.jsonl",
    "test.table.jsonl",
}


class RunDirectory:
    """The directory of a run. One process at a time opens it.

    `quiet` prints nothing; log.txt is still written. `new` removes what a run that ended before its first
    step has left.
    """

    def __init__(self, path: str | os.PathLike[str], *, quiet: bool = False, new: bool = False):
        self.path, self.quiet = pathlib.Path(path), quiet
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = open_own(self.path / LOCK, "a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise BlockingIOError(f"another process is working in '{self.path}'") from None
        try:
            if new and took_no_step(self.path):
                for name in PREPARED & {p.name for p in self.path.iterdir()}:
                    remove(self.path / name)
            self._metrics, self._log, self._sessions = (
                LineFile(self.path / n) for n in (METRICS, LOG, SESSIONS)
            )
        except BaseException:
            self._lock.close()
            raise
        self._said = self._log.count  # before this session
        self.tensorboard: Any = None  # a writer with add_scalar(tag, value, step)
        self._background = Background()
        self._progress: Progress | None = None
        checkpoint.remove_unfinished(self.checkpoints)

    @property
    def checkpoints(self) -> pathlib.Path:
        """The folder of the checkpoints."""
        return self.path / CHECKPOINTS

    @property
    def final(self) -> pathlib.Path:
        """The model directory that the run leaves."""
        return self.path / FINAL

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Waits for the checkpoint being written, and lets other processes in."""
        if self._progress is not None:
            self._progress.close()
        if self.tensorboard is not None:
            self.tensorboard.close()
        self._lock.close()

    # ---- what is told ----

    def say(self, text: str) -> None:
        """A line of the log, and on the terminal.

        It must be the same whether the run was stopped or not: see note().
        """
        self._tell(self._log, text)

    def note(self, text: str) -> None:
        """A line about this session of the run: sessions.txt, and the terminal."""
        self._tell(self._sessions, text)

    def _tell(self, file: LineFile, text: str) -> None:
        file.append(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}")
        if not self.quiet:
            with Progress.external_write_mode():
                print(text, flush=True)

    def record(self, values: Mapping[str, Any]) -> None:
        """A line of metrics.jsonl. JSON has no NaN: what is not finite is null."""
        line = finite(values)
        self._metrics.append(json.dumps(line))
        if self.tensorboard is not None:
            for name, value in line.items():
                if name != "step" and isinstance(value, (int, float)):
                    self.tensorboard.add_scalar(name, value, line["step"])

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl as dicts."""
        return read_metrics(self.path / METRICS)

    def lines(self) -> dict[str, int]:
        """The numbers of lines of metrics.jsonl and log.txt, for a checkpoint."""
        return {METRICS: self._metrics.count, LOG: self._log.count}

    def forget_after(self, step: int, lines: Mapping[str, int] | None = None) -> None:
        """Removes what was told after a step, which will be repeated.

        `lines` is what lines() returned at that step. Without it the metrics of later steps are removed, and
        for step 0 what earlier sessions logged.
        """
        self._metrics = LineFile(self.path / METRICS)  # which may have been cut off since
        if lines is not None:
            for file in (self._metrics, self._log):
                file.keep(file.lines()[: lines.get(file.path.name)])
            return
        steps = [line["step"] for line in read_metrics(self.path / METRICS)]
        self._metrics.keep(
            [line for line, at in zip(self._metrics.lines(), steps, strict=True) if at <= step]
        )
        if step == 0:
            self._log.keep(self._log.lines()[self._said :])
            self._said = 0

    def show(self, step: int, steps: int, metrics: Mapping[str, float]) -> None:
        """The progress bar."""
        if self._progress is None:
            self._progress = Progress(steps, "step", first=step - 1, quiet=self.quiet)
        rate = metrics["tokens"] / max(metrics["seconds"], 1e-9)
        self._progress.reach(step, note=f"loss {metrics['loss']:.3f}, {rate:,.0f} tokens/s")

    def write_report(self, title: str, facts: Mapping[str, Any]) -> pathlib.Path:
        """Writes report.html and loss.svg; returns the path of the page."""
        metrics = self.metrics()
        for name, content in (
            (REPORT, report.page(title, facts, metrics)),
            (PICTURE, report.picture(metrics)),
        ):
            with atomic_write(self.path / name) as f:
                f.write(content.encode())
        return self.path / REPORT

    # ---- checkpoints ----

    def save(
        self, step: int, parts: Mapping[str, checkpoint.Arrays], state: Mapping[str, Any], keep: int
    ) -> None:
        """Writes a checkpoint in the background, then removes those that are not kept."""

        state = copy.deepcopy(dict(state))  # the steps that follow change what is in it

        def job() -> None:
            for file in (self._metrics, self._log):
                file.sync()
            checkpoint.write(self.checkpoints, step, parts, state)
            checkpoint.prune(self.checkpoints, keep)

        self._background.run(job)

    def finish(self) -> None:
        """Waits until the last checkpoint is on disk."""
        self._background.wait()

    def newest(self) -> checkpoint.Checkpoint | None:
        """The last whole checkpoint; damaged ones after it are named."""
        found, problems = checkpoint.newest(self.checkpoints)
        for problem in problems:
            self.note(f"left aside: {problem}")
        return found


class Follower(RunDirectory):
    """The directory as ranks other than 0 have it: they read checkpoints, and write and say nothing."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path, self.quiet, self.tensorboard = pathlib.Path(path), True, None
        self._background = Background()

    def close(self) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def record(self, values: Mapping[str, Any]) -> None:
        pass

    def forget_after(self, step: int, lines: Mapping[str, int] | None = None) -> None:
        pass

    def show(self, step: int, steps: int, metrics: Mapping[str, float]) -> None:
        pass

    def write_report(self, title: str, facts: Mapping[str, Any]) -> pathlib.Path:
        return self.path / REPORT


def finite(values: Mapping[str, Any]) -> dict[str, Any]:
    """For JSON, which has no infinity and no NaN: None in their place."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}


def begun(path: pathlib.Path, resume: bool) -> pathlib.Path | None:
    """The config.toml of the run that is to go on in a directory, None where one is to begin.

    Without `resume` a run that is there is an error, unless it ended before its first step.
    """
    config = path / CONFIG
    if resume:
        return config if config.exists() else None
    if path.is_dir() and any(p.name not in TOLD for p in path.iterdir()) and not took_no_step(path):
        raise FileExistsError(f"'{path}' is not empty; --resume goes on with the run in it")
    return None


def took_no_step(path: pathlib.Path) -> bool:
    """Whether a run in the directory has its settings and what is made
    before the first step, and nothing else.

    A config.toml without the lock of a run is somebody's own.
    """
    there = {p.name for p in path.iterdir()}
    return {CONFIG, LOCK} <= there <= PREPARED | TOLD


def read_metrics(file: pathlib.Path) -> list[dict[str, Any]]:
    """The lines of a metrics.jsonl."""
    if not file.exists():
        return []
    try:
        lines = read_bytes(file).decode().split("\n")
    except UnicodeDecodeError as e:
        raise FormatError(f"'{file}' is not valid UTF-8 at byte {e.start}") from None
    if lines[-1]:
        raise FormatError(f"'{file}' line {len(lines)}: it is cut off")
    found = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as e:
            raise FormatError(f"'{file}' line {number}: not valid JSON: {e}") from None
        if not isinstance(values, dict) or not isinstance(values.get("step"), int):
            raise FormatError(f"'{file}' line {number}: it must be an object with a step")
        found.append(values)
    return found
