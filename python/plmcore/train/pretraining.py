"""From text to a model directory."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from plmcore import language_model, models, tokenizers
from plmcore._core import manual_seed
from plmcore.files.whole import atomic_directory, atomic_write
from plmcore.models.config import Config
from plmcore.runtime.generator import Generator
from plmcore.train import (
    extending,
    hints,
    making,
    recipes,
    run_directory,
    run_settings,
    settings,
    tensorboard,
)
from plmcore.train.loop import Trainer
from plmcore.train.run_data import RunData
from plmcore.train.run_directory import RunDirectory
from plmcore.train.samples import Samples
from plmcore.train.settings import Settings
from plmcore.train.supervised import parse


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
    tokenizer: str | None = None,
    errors: str | None = None,
    config: str | os.PathLike[str] | None = None,
    changes: Sequence[str] = (),
    resume: bool = False,
    quiet: bool = False,
    callbacks: Sequence[Callable[[Trainer, Mapping[str, float]], None]] = (),
) -> language_model.LanguageModel:
    """Trains a tokenizer and a model of a family on text files.

    Writes the model to `out`/final; returns the model.

    `target` has the translations of `text`, line by line, for the Transformer. `supervised` tasks are mixed
    with the text of T5 and BART: "sst2=FILE", or dict(task=, file=, columns=, source=, target=, rate=).
    errors="replace" reads bytes that are not UTF-8 as U+FFFD. `tokenizer` is a directory, or the kind to
    train on the text. `config` is the config.toml of another run, `changes` are settings as "optim.lr=3e-4";
    `lr` and `batch` are optim.lr and data.batch. resume=True continues a stopped run, bit for bit, from its
    last checkpoint.
    """
    out = pathlib.Path(out)
    given: Settings = {
        "run": {"family": family, "size": size, "seed": seed},
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
    begun = run_directory.begun(out, resume)
    if begun is not None:
        chosen = run_settings.resumed(begun, given, config, changes)
    else:
        chosen = run_settings.new(given, config, changes)
    if chosen["train"]["tensorboard"]:
        tensorboard.library()  # is missed now, not after the corpus is made
    with RunDirectory(out, quiet=quiet, new=begun is None) as run, Generator():
        return _Pretraining(run, chosen, callbacks)()


class _Pretraining:
    """One run, each part of which is in the directory before the next begins."""

    def __init__(self, run: RunDirectory, chosen: Settings, callbacks: Sequence[Callable[..., None]]):
        self.run, self.settings, self.callbacks = run, chosen, callbacks
        self.data = RunData(run, chosen)

    def __call__(self) -> language_model.LanguageModel:
        self.record_settings()
        trainer = self.trainer()
        making.announce(
            self.run,
            trainer,
            f"{self.settings['run']['family']}, {trainer.model.num_parameters():,} parameters; "
            f"{self.data.tokens:,} tokens of text",
        )
        try:
            trainer.run()
        except BaseException:
            with contextlib.suppress(OSError):  # what stopped the run is to be told
                self.report(trainer)
            raise
        finally:
            trainer.batches.close()
        self.report(trainer)
        lm = self.finish(trainer)
        self.run.note(f"model: {self.run.final}  curves: {self.run.path / run_directory.REPORT}")
        return lm

    def record_settings(self) -> None:
        """config.toml, with the digests of the texts."""
        self.data.check_texts()
        self.data.tables  # what is wrong in them is found before the long work
        run = self.settings["run"]
        with atomic_write(self.run.path / run_directory.CONFIG) as f:
            f.write(settings.dumps(self.settings, recipes.defaults(run["family"], run["size"])).encode())

    def trainer(self) -> Trainer:
        seed, options = self.settings["run"]["seed"], self.settings["train"]
        batches, evaluate = self.data.batches(seed), self.data.evaluation(seed, options["evaluate_batches"])
        manual_seed(seed)
        model = models.build(self.model_config(self.data.tokenizer), self.settings["model"]["head"])
        callbacks: list[Any] = [
            *([] if evaluate is None else [Samples(self.run, self.data)]),
            *self.callbacks,
        ]
        criterion = self.data.criterion(model, options["label_smoothing"])
        return making.trainer(
            self.run,
            self.settings,
            model,
            batches,
            criterion=criterion,
            evaluate=evaluate,
            callbacks=callbacks,
            data=self.data.fingerprint,
            ends=extending.ends(options, options["steps"]),
        )

    def model_config(self, tokenizer: tokenizers.Tokenizer) -> Config:
        """The size, and what the tokenizer knows: the number of tokens and the special ones."""
        kind = models.config_class(self.settings["run"]["family"])
        known = {f.name for f in dataclasses.fields(kind)}
        values = {k: v for k, v in self.settings["model"].items() if v is not None and k != "head"}
        special = {
            f"{role}_token_id": getattr(tokenizer, f"{role}_token_id") for role in ("pad", "bos", "eos")
        }
        start = recipes.recipe(self.settings["run"]["family"]).decoder_start
        special["decoder_start_token_id"] = getattr(tokenizer, f"{start}_token_id")
        special = {k: v for k, v in special.items() if v is not None}
        values = (
            {"vocab_size": tokenizer.vocab_size} | {k: v for k, v in special.items() if k in known} | values
        )
        if isinstance(size := values["vocab_size"], int) and size < tokenizer.vocab_size:
            raise settings.SettingError(
                f"model.vocab_size is {size}, and the tokenizer has {tokenizer.vocab_size} tokens"
            )
        extra = {k: v for k, v in special.items() if k not in known and k != "decoder_start_token_id"}
        return kind(**values, extra=extra)

    def report(self, trainer: Trainer) -> None:
        run = self.settings["run"]
        facts = {
            "model": f"{run['family']} {run['size']}, {trainer.model.num_parameters():,} parameters",
            "steps": f"{trainer.step:,} of {trainer.steps:,}",
            "tokens": f"{trainer.tokens:,}",
            "time": f"{trainer.seconds / 60:.1f} minutes",
            "seed": run["seed"],
            "best held-out loss": "-" if trainer.best is None else f"{trainer.best:.4f}",
        }
        self.run.write_report(f"{run['family']} {run['size']}: {self.run.path.name}", facts)

    def finish(self, trainer: Trainer) -> language_model.LanguageModel:
        """DIR/final."""
        making.choose_result(self.run, self.settings["train"], trainer)
        lm = language_model.LanguageModel(trainer.model.eval(), self.data.tokenizer, self.run.final)
        with atomic_directory(self.run.final) as folder:
            lm.save(folder)
            self.data.tokenizer.save(folder)
        return lm
