"""From text to a model directory."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from plmcore import language_model, models, tokenizers
from plmcore._core import manual_seed
from plmcore.files.whole import atomic_directory
from plmcore.models.config import Config
from plmcore.train import hints, making, recipes, run_settings, settings, trainers
from plmcore.train.loop import Trainer
from plmcore.train.run import Run
from plmcore.train.run_data import RunData
from plmcore.train.samples import Samples
from plmcore.train.settings import Settings
from plmcore.train.supervised import parse
from plmcore.train.training import Training


@hints.hinted
def pretrain(
    family: str | None = None,
    *,
    out: str | os.PathLike[str],
    text: Iterable[str | os.PathLike[str]] = (),
    target: Iterable[str | os.PathLike[str]] = (),
    supervised: Iterable[str | Mapping[str, Any]] = (),
    size: str | None = None,
    steps: int | None = None,
    lr: float | None = None,
    batch: int | None = None,
    save_every: int | None = None,
    seed: int | None = None,
    device: str | None = None,
    tokenizer: str | None = None,
    errors: str | None = None,
    config: str | os.PathLike[str] | None = None,
    changes: Sequence[str] = (),
    resume: bool = False,
    quiet: bool = False,
    callbacks: Sequence[Callable[[Trainer, Mapping[str, float]], None]] = (),
) -> language_model.LanguageModel:
    """Trains a tokenizer and a model of a family on text files.

    Writes the model to `out`/final; returns the model. word2vec and glove give word vectors: plm.vectors.
    pretrain is this function with their type.

    `target` has the translations of `text`, line by line, to learn to translate. `supervised` tasks are mixed
    with the text of T5 and BART: "sst2=FILE", or dict(task=, file=, columns=, source=, target=, rate=).
    errors="replace" reads bytes that are not UTF-8 as U+FFFD. `tokenizer` is a directory, or the kind to
    train on the text. `config` is the config.toml of another run, `changes` are settings as "optim.lr=3e-4";
    `lr`, `batch` and `device` are optim.lr, data.batch and run.device. resume=True continues a stopped run,
    bit for bit, from its last checkpoint (word vectors: on one thread).
    """
    given: Settings = {
        "run": {"family": family, "size": size, "seed": seed, "device": device},
        "data": {
            "text": [os.fspath(t) for t in text] or None,
            "target": [os.fspath(t) for t in target] or None,
            "tokenizer": tokenizer,
            "batch": batch,
            "errors": errors,
        },
        "optim": {"lr": lr},
        "mixture": {"tables": [parse(t) if isinstance(t, str) else dict(t) for t in supervised] or None},
        "train": {"steps": steps, "save_every": save_every},
    }
    kind = trainers.trainer(trainers.family_of(family, out, config)) or _Pretraining
    run = kind(out, given, config=config, changes=changes, resume=resume, quiet=quiet, callbacks=callbacks)
    result: language_model.LanguageModel = run()
    return result


class _Pretraining(Run):
    """Each part is in the directory before the next begins."""

    def new(self, given: Settings, config: str | os.PathLike[str] | None, changes: Sequence[str]) -> Settings:
        return run_settings.new(given, config, changes)

    def resumed(
        self,
        begun: pathlib.Path,
        given: Settings,
        config: str | os.PathLike[str] | None,
        changes: Sequence[str],
    ) -> Settings:
        return run_settings.resumed(begun, given, config, changes)

    data: RunData

    def defaults(self, stored: Settings) -> Settings:
        return recipes.defaults(stored["run"]["family"], stored["run"]["size"])

    def training(self) -> Trainer:
        self.data = RunData(self.directory, self.settings)
        self.data.check_texts()
        self.data.tables  # what is wrong in them is found before the long work
        self.record_settings()
        seed, table = self.settings["run"]["seed"], self.settings["train"]
        batches, evaluate = self.data.batches(seed), self.data.evaluation(seed, table["evaluate_batches"])
        manual_seed(seed)
        model = models.build(self.model_config(self.data.tokenizer), self.settings["model"]["head"]).to(
            self.settings["run"]["device"]
        )
        samples = [] if evaluate is None else [Samples(self.directory, self.data)]
        return making.trainer(
            self.settings,
            model,
            batches,
            criterion=self.data.criterion(model, table["label_smoothing"]),
            options=self.options(
                evaluate=evaluate, callbacks=[*samples, *self.callbacks], data=self.data.fingerprint
            ),
        )

    def model_config(self, tokenizer: tokenizers.Tokenizer) -> Config:
        """The size, and what the tokenizer knows: the number of tokens and the special ones."""
        kind = models.config_class(self.settings["run"]["family"])
        known = {f.name for f in dataclasses.fields(kind)}
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v
            for k, v in self.settings["model"].items()
            if v is not None and k != "head"
        }
        special = {
            f"{role}_token_id": getattr(tokenizer, f"{role}_token_id") for role in ("pad", "bos", "eos")
        }
        start = recipes.recipe(self.settings["run"]["family"]).decoder_start
        special["decoder_start_token_id"] = getattr(tokenizer, f"{start}_token_id")
        special = {k: v for k, v in special.items() if v is not None}
        values = (
            {"vocab_size": tokenizer.vocab_size} | {k: v for k, v in special.items() if k in known} | values
        )
        if self.data.reads_all_words:
            values["vocab_size"] = min(tokenizer.vocab_size, self.settings["data"]["vocab"])
        elif isinstance(size := values["vocab_size"], int) and size < tokenizer.vocab_size:
            raise settings.SettingError(
                f"model.vocab_size is {size}, and the tokenizer has {tokenizer.vocab_size} tokens"
            )
        extra = {k: v for k, v in special.items() if k not in known and k != "decoder_start_token_id"}
        return kind(**values, extra=extra)

    def announcement(self, training: Training) -> str:
        return (
            f"{self.settings['run']['family']}, {training.model.num_parameters():,} parameters; "
            f"{self.data.tokens:,} tokens of text"
        )

    @property
    def title(self) -> str:
        return f"{self.settings['run']['family']} {self.settings['run']['size']}"

    def facts(self, training: Training) -> dict[str, Any]:
        return {"model": f"{self.title}, {training.model.num_parameters():,} parameters"}

    def result(self, training: Training) -> language_model.LanguageModel:
        return language_model.LanguageModel(training.model.eval(), self.data.tokenizer, self.directory.final)

    def finish(self, training: Training) -> None:
        with atomic_directory(self.directory.final) as folder:
            self.result(training).save(folder)
            self.data.tokenizer.save(folder)
