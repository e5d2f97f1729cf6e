"""Runs of word2vec and GloVe: `plmcore pretrain word2vec` and `plmcore pretrain glove`."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from plmcore import _core
from plmcore._core import ArgumentError
from plmcore.files.whole import atomic_directory, remove
from plmcore.train import run_directory, settings
from plmcore.train.run import Run
from plmcore.train.settings import SettingError, Settings
from plmcore.train.training import Training
from plmcore.vectors.corpus import Corpus
from plmcore.vectors.glove import RECORDS_PER_STEP, GloveTraining
from plmcore.vectors.records import cooccurrences, opened, shuffled
from plmcore.vectors.table import FILE, Vectors
from plmcore.vectors.word2vec import RATES, WORDS_PER_STEP, Word2VecTraining


class _VectorsRun(Run):
    """What both have: the text is prepared in the folder corpus, which the result does not need."""

    def resumed(
        self,
        begun: pathlib.Path,
        given: Settings,
        config: str | os.PathLike[str] | None,
        changes: Sequence[str],
    ) -> Settings:
        found = super().resumed(begun, given, config, changes)
        if found["train"]["extended"]:
            raise SettingError(
                f"the run in '{self.path}' cannot be made longer: its learning rate falls to its end; start "
                "another one in an empty directory"
            )
        return found

    def new(self, given: Settings, config: str | os.PathLike[str] | None, changes: Sequence[str]) -> Settings:
        found = super().new(given, config, changes)
        if not found["data"]["text"]:
            raise ArgumentError("there is no text: --text names files or folders")
        return found

    def prepared(self) -> pathlib.Path:
        """The folder of what is made of the text."""
        self.record_settings()
        folder = self.path / "corpus"
        folder.mkdir(exist_ok=True)
        return folder

    def announcement(self, training: Training) -> str:
        return f"{self.settings['run']['family']}, {len(training.model)} words"

    @property
    def title(self) -> str:
        """Of the report."""
        return str(self.settings["run"]["family"])

    def facts(self, training: Training) -> dict[str, Any]:
        return {"vectors": f"{len(training.model):,} words, {self.settings['model']['dim']} dimensions"}

    def finish(self, training: Training) -> None:
        with atomic_directory(self.directory.final) as folder:
            training.model.save(folder / FILE)
        remove(self.path / "corpus")


class Word2VecRun(_VectorsRun):
    """`plmcore pretrain word2vec`."""

    def defaults(self, stored: Settings) -> Settings:
        return {
            "run": {"family": "word2vec"},
            "data": {"text": [], "min_count": 5},
            "model": {
                "model": "skip-gram",
                "dim": 100,
                "window": 5,
                "negative": 5,
                "hierarchical": False,
                "sample": 1e-3,
            },
            "optim": {"lr": 0.0},  # that of the model
            "train": {
                "epochs": 5,
                "steps": None,
                "threads": _core.num_threads(),
                "words_per_step": WORDS_PER_STEP,
                "save_every": 10,
                "log_every": 1,
            },
        }

    def new(self, given: Settings, config: str | os.PathLike[str] | None, changes: Sequence[str]) -> Settings:
        found = super().new(given, config, changes)
        found["optim"]["lr"] = found["optim"]["lr"] or RATES.get(found["model"]["model"], 0.0)
        return found

    def training(self) -> Training:
        folder, table, train = self.prepared(), self.settings["data"], self.settings["train"]
        corpus = Corpus(table["text"], table["min_count"], word2vec=True)
        corpus.write(folder / "ids")
        own = {name: train[name] for name in ("epochs", "threads", "words_per_step")}
        return Word2VecTraining(
            corpus,
            folder / "ids",
            **self.settings["model"],
            **own,
            lr=self.settings["optim"]["lr"],
            **_options(self),
        )


class GloveRun(_VectorsRun):
    """`plmcore pretrain glove`."""

    def defaults(self, stored: Settings) -> Settings:
        return {
            "run": {"family": "glove"},
            "data": {"text": [], "min_count": 5, "window": 15, "symmetric": True, "memory_mb": 1024},
            "model": {"dim": 50, "x_max": 100.0, "alpha": 0.75},
            "optim": {"lr": 0.05},
            "train": {
                "epochs": 25,
                "steps": None,
                "threads": _core.num_threads(),
                "records_per_step": RECORDS_PER_STEP,
                "save_every": 10,
                "log_every": 1,
            },
        }

    def training(self) -> Training:
        folder, table, train = self.prepared(), self.settings["data"], self.settings["train"]
        how = {name: table[name] for name in ("min_count", "window", "symmetric", "memory_mb")}
        counted = cooccurrences(table["text"], folder / "counted", **how)
        records = shuffled(opened(counted.path), folder / "shuffled", self.settings["run"]["seed"])
        remove(counted.path)
        own = {name: train[name] for name in ("epochs", "threads", "records_per_step")}
        return GloveTraining(
            records,
            counted.words,
            counts=counted.counts,
            **self.settings["model"],
            **own,
            lr=self.settings["optim"]["lr"],
            **_options(self),
        )


FAMILIES: dict[str, type[_VectorsRun]] = {"word2vec": Word2VecRun, "glove": GloveRun}


def _options(run: Run) -> dict[str, Any]:
    """What a training takes of the settings; the steps follow from the text."""
    return {name: value for name, value in run.options(steps=1, ends=()).items() if name != "steps"}


def family_of(
    family: str | None, out: str | os.PathLike[str], config: str | os.PathLike[str] | None = None
) -> str | None:
    """The family of a run that is given, begun in `out`, or told by a config.toml; None if no vectors."""
    if family is None:
        file = pathlib.Path(config) if config else pathlib.Path(out) / run_directory.CONFIG
        family = settings.read(file).get("run", {}).get("family") if file.is_file() else None
    return family if family in FAMILIES else None


def pretrain(
    family: str | None = None,
    *,
    out: str | os.PathLike[str],
    text: Iterable[str | os.PathLike[str]] = (),
    lr: float | None = None,
    seed: int | None = None,
    save_every: int | None = None,
    config: str | os.PathLike[str] | None = None,
    changes: Sequence[str] = (),
    resume: bool = False,
    quiet: bool = False,
    callbacks: Sequence[Callable[[Any, Mapping[str, float]], None]] = (),
) -> Vectors:
    """Trains word2vec or GloVe on text files in a run directory; `out`/final has the vectors.

    `changes` are settings as "model.dim=300". resume=True continues a stopped run from its last checkpoint,
    bit for bit on one thread.
    """
    known = family_of(family, out, config)
    if known is None:
        raise ArgumentError(f"family must be {' or '.join(FAMILIES)}, got {family!r}")
    given: Settings = {
        "run": {"seed": seed},
        "data": {"text": [os.fspath(t) for t in text] or None},
        "optim": {"lr": lr},
        "train": {"save_every": save_every},
    }
    run = FAMILIES[known](
        out, given, config=config, changes=changes, resume=resume, quiet=quiet, callbacks=callbacks
    )
    vectors: Vectors = run()
    return vectors
