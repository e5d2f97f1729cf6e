"""Runs of word2vec and GloVe: `plmcore pretrain word2vec` and `plmcore pretrain glove`."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any, cast

from plmcore import _core
from plmcore._core import ArgumentError
from plmcore.files.whole import atomic_directory, remove
from plmcore.train import pretraining, trainers
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

    FAMILY: str

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
        if found["train"]["steps"] is not None:
            raise SettingError("train.steps follows from the text and train.epochs; set those")
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
        return f"{self.FAMILY}, {len(training.model)} words"

    @property
    def title(self) -> str:
        return self.FAMILY

    def facts(self, training: Training) -> dict[str, Any]:
        return {"vectors": f"{len(training.model):,} words, {self.settings['model']['dim']} dimensions"}

    def finish(self, training: Training) -> None:
        with atomic_directory(self.directory.final) as folder:
            training.model.save(folder / FILE)
        remove(self.path / "corpus")


class Word2VecRun(_VectorsRun):
    """`plmcore pretrain word2vec`."""

    FAMILY = "word2vec"

    def defaults(self, stored: Settings) -> Settings:
        return {
            "run": {"family": self.FAMILY},
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

    FAMILY = "glove"

    def defaults(self, stored: Settings) -> Settings:
        return {
            "run": {"family": self.FAMILY},
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


def _options(run: Run) -> dict[str, Any]:
    """What a training takes of the settings; the steps follow from the text."""
    return {name: value for name, value in run.options(steps=1, ends=()).items() if name != "steps"}


def pretrain(family: str | None = None, *, out: str | os.PathLike[str], **options: Any) -> Vectors:
    """Trains word2vec or GloVe on text files in a run directory; `out`/final has the vectors.

    The same as plm.pretrain, which has the options: text, lr, seed, save_every, config, changes, resume.
    """
    known = trainers.family_of(family, out, options.get("config"))
    if known not in (Word2VecRun.FAMILY, GloveRun.FAMILY):
        raise ArgumentError(f"family must be word2vec or glove, got {family!r}")
    vectors: Any = pretraining.pretrain(family, out=out, **options)
    return cast(Vectors, vectors)
