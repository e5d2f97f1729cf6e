"""A run: what a training has besides its steps.

Settings in config.toml, a directory, resuming, a report, the result: pre-training, fine-tuning and every
other trainer are one Run each, which says what is special about it. docs/adding-a-trainer.md has an example.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plmcore import _core
from plmcore.files.whole import atomic_write
from plmcore.runtime.generator import Generator
from plmcore.train import extending, ranks, run_directory, settings, tensorboard
from plmcore.train.run_directory import Follower, RunDirectory
from plmcore.train.settings import SettingError, Settings
from plmcore.train.training import RESULTS, Training

# What every run has in [train], and what a run without a value of its own takes
TRAIN: dict[str, Any] = {
    "extended": [],
    "log_every": 10,
    "save_every": None,
    "keep": 2,
    "evaluate_every": None,
    "patience": None,
    "result": "last",
    "tensorboard": False,
}
# of settings without a default
KINDS: dict[str, str] = dict.fromkeys(
    ("train.steps", "train.patience", "train.save_every", "train.evaluate_every"), "int"
)


class Run:
    """A run in the directory `out`: run() returns its result.

    `given` are settings, None those that are not given; `config` is the config.toml of another run, `changes`
    are settings as "optim.lr=3e-4". resume=True goes on with the run that is in the directory. Settings are
    checked here, before anything is written.
    """

    directory: RunDirectory  # while the run is at work
    NEEDED: Sequence[str] = ()  # keys of [run] that the defaults depend on

    def __init__(
        self,
        out: str | os.PathLike[str],
        given: Settings,
        *,
        config: str | os.PathLike[str] | None = None,
        changes: Sequence[str] = (),
        resume: bool = False,
        quiet: bool = False,
        callbacks: Sequence[Callable[[Any, Mapping[str, float]], None]] = (),
    ):
        self.path, self.quiet, self.callbacks = pathlib.Path(out), quiet, callbacks
        self.group = ranks.current()
        begun = run_directory.begun(self.path, resume)
        self.begun = begun is not None
        if begun is None:
            self.settings = self.new(given, config, changes)
        else:
            self.settings = self.resumed(begun, given, config, changes)
        if self.settings["train"]["tensorboard"]:
            tensorboard.library()  # is missed now, not after the data is made

    # ---- what a subclass says ----

    def defaults(self, stored: Settings) -> Settings:
        """All settings with their usual values; `stored`: those of the run, where one goes on."""
        raise NotImplementedError

    def training(self) -> Training:
        """The training at its first step, made of `options`. Calls record_settings()."""
        raise NotImplementedError

    def started(self, training: Training) -> None:
        """Called when the training is where it goes on from."""

    def announcement(self, training: Training) -> str:
        """What is trained, for the log."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """Of the report."""
        raise NotImplementedError

    def facts(self, training: Training) -> dict[str, Any]:
        """What the report says of the training, beside what it says of every one."""
        return {}

    def finish(self, training: Training) -> None:
        """Writes the result."""
        raise NotImplementedError

    def result(self, training: Training) -> Any:
        """What the caller gets."""
        return training.model

    # ---- settings ----

    def new(self, given: Settings, config: str | os.PathLike[str] | None, changes: Sequence[str]) -> Settings:
        """The usual ones, changed by the config, by what was given, and by single settings, in this order."""
        known = self._known({})
        for name in (f"{s}.{k}" for s, table in given.items() for k, v in table.items() if v is not None):
            section, _, key = name.partition(".")
            if key not in known.get(section, {}):
                raise SettingError(f"{self.title} has no setting {name}; leave it out")
        layers = settings.layers(given, config, changes)
        chosen = settings.merged(known, *layers, kinds=KINDS)
        check_result(chosen["train"])
        return chosen

    def resumed(
        self,
        begun: pathlib.Path,
        given: Settings,
        config: str | os.PathLike[str] | None,
        changes: Sequence[str],
    ) -> Settings:
        """Those of the run, with what may change; more steps make it longer."""
        layers = settings.layers(given, config, changes)
        return extending.resumed(begun, self.NEEDED, self._known, layers, (), KINDS)

    def _known(self, stored: Settings) -> Settings:
        usual = self.defaults(stored)
        own = {section: usual.get(section, {}) for section in ("run", "data", "train")}
        return {**usual, "run": {"seed": 0} | own["run"], "data": own["data"], "train": TRAIN | own["train"]}

    def record_settings(self) -> None:
        """Writes config.toml."""
        if self.group.rank == 0:
            with atomic_write(self.path / run_directory.CONFIG) as f:
                f.write(settings.dumps(self.settings, self.defaults(self.settings)).encode())

    def options(self, **own: Any) -> dict[str, Any]:
        """What a Training takes of the settings; `own` are more, and others in their place."""
        table = self.settings["train"] | own
        taken = ("steps", "save_every", "keep", "log_every", "evaluate_every", "patience")
        return {
            **{name: table[name] for name in taken},
            "ends": extending.ends(table, table["steps"]) if "ends" not in own else own["ends"],
            "seed": self.settings["run"]["seed"],
            "directory": self.directory,
            "callbacks": self.callbacks,
            **own,
        }

    # ---- the run ----

    def __call__(self) -> Any:
        """From the first step, or the last checkpoint, to the result."""
        self.group.barrier()  # all have seen whether a run is there; rank 0 writes from here on
        with self._opened() as self.directory, Generator():
            with self.group.first():
                training = self.training()
            self._go_on(training)
            self.started(training)
            if training.step == 0:
                self.directory.say(f"{self.announcement(training)}; {training.steps} steps")
            self.directory.note(
                f"steps {training.step} to {training.steps}, {_core.num_threads()} threads, {_core.isa()}, "
                f"{_core.blas()}"
            )
            try:
                training.run()
            except BaseException:
                with contextlib.suppress(OSError):  # what stopped the run is to be told
                    self.report(training)
                raise
            finally:
                training.close()
            self.report(training)
            training.settle(self.settings["train"]["result"])
            result = self.result(training)
            if self.group.rank == 0:
                self.finish(training)
            self.directory.note(f"model: {self.directory.final}  curves: {self.path / run_directory.REPORT}")
            return result

    def _opened(self) -> RunDirectory:
        if self.group.rank:
            return Follower(self.path)
        return RunDirectory(self.path, quiet=self.quiet, new=not self.begun)

    def _go_on(self, training: Training) -> None:
        """From the last checkpoint, where there is one."""
        if self.settings["train"]["tensorboard"] and self.group.rank == 0:
            self.directory.tensorboard = tensorboard.writer(self.path)
        saved = self.directory.newest()
        if saved is not None:
            training.restore(saved)
            self.directory.note(f"going on from step {saved.step}")
        else:
            self.directory.forget_after(0)

    def report(self, training: Training) -> None:
        """Writes report.html and loss.svg."""
        facts = {
            **self.facts(training),
            "steps": f"{training.step:,} of {training.steps:,}",
            "tokens": f"{training.tokens:,}",
            "time": f"{training.seconds / 60:.1f} minutes",
            "seed": training.seed,
            "best held-out loss": "-" if training.best is None else f"{training.best:.4f}",
        }
        self.directory.write_report(f"{self.title}: {self.path.name}", facts)


def check_result(table: Mapping[str, Any]) -> None:
    """train.result, and that there is what it is made of."""
    if table["result"] not in RESULTS:
        raise SettingError(f"train.result must be {' or '.join(RESULTS)}, got {table['result']!r}")
    if table["result"] != "last" and table["save_every"] is None:
        raise SettingError(
            f"train.result={table['result']} is made of checkpoints, and train.save_every is none"
        )
