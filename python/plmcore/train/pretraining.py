"""From text to a model directory."""

from __future__ import annotations

import dataclasses
import inspect
import os
import pathlib
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import plmcore as plm
from plmcore import data, language_model, models, objectives, optim, tokenizers
from plmcore._core import ArgumentError
from plmcore.cli.progress import Progress
from plmcore.files import atomic_write, sync_folder
from plmcore.train import (
    batching,
    checkpoint,
    groups,
    held_out,
    recipes,
    run_directory,
    run_settings,
    sampling,
    schedules,
    settings,
    tensorboard,
)
from plmcore.train.loop import Trainer
from plmcore.train.recomputing import recompute_blocks
from plmcore.train.run_directory import RunDirectory
from plmcore.train.settings import SettingError, Settings

PROMPT, SAMPLE = 12, 60  # tokens


def pretrain(
    family: str | None = None,
    *,
    out: str | os.PathLike[str],
    text: Iterable[str | os.PathLike[str]] = (),
    size: str | None = None,
    steps: int | None = None,
    save_every: int | None = None,
    seed: int | None = None,
    tokenizer: str | None = None,
    config: str | os.PathLike[str] | None = None,
    changes: Sequence[str] = (),
    resume: bool = False,
    quiet: bool = False,
    callbacks: Sequence[Callable[[Trainer, Mapping[str, float]], None]] = (),
) -> language_model.LanguageModel:
    """Trains a model of a family on text files from the beginning; the result is also the model directory `out`/final.

    `tokenizer` is a directory, or the kind to train on the text. `config` is the config.toml of another run, `changes` are settings as
    "optim.lr=3e-4". With resume=True a run that was stopped goes on, bit for bit, from its last checkpoint.
    """
    out = pathlib.Path(out)
    given: Settings = {
        "run": {"family": family, "size": size, "seed": seed},
        "data": {"text": [os.fspath(t) for t in text] or None, "tokenizer": tokenizer},
        "train": {"steps": steps, "save_every": save_every},
    }
    begun = out / run_directory.CONFIG
    if resume and begun.exists():
        chosen = run_settings.resumed(begun, given, config, changes)
    else:
        if _files_in(out) and not resume:
            raise FileExistsError(f"'{out}' is not empty; --resume goes on with the run in it")
        chosen = run_settings.new(given, config, changes)
    with RunDirectory(out, quiet=quiet) as run:
        return _Pretraining(run, chosen, callbacks)()


def _files_in(folder: pathlib.Path) -> list[str]:
    return [p.name for p in folder.iterdir() if p.name != ".lock"] if folder.is_dir() else []


class _Pretraining:
    """One run, each part of which is in the directory before the next begins."""

    def __init__(self, run: RunDirectory, chosen: Settings, callbacks: Sequence[Callable]):
        self.run, self.settings, self.callbacks = run, chosen, callbacks

    def __call__(self) -> language_model.LanguageModel:
        self.record_settings()
        tokenizer = self.tokenizer()
        corpus = self.corpus(tokenizer)
        trainer = self.trainer(tokenizer, corpus)
        self.run.say(
            f"{self.settings['run']['family']}, {trainer.model.num_parameters():,} parameters; {len(corpus.ids):,} tokens of text; "
            f"steps {trainer.step} to {trainer.steps}, {plm.num_threads()} threads"
        )
        try:
            trainer.run()
        finally:
            trainer.batches.close()
            self.report(trainer)
        lm = self.finish(trainer, tokenizer)
        self.run.say(f"model: {self.run.final}  curves: {self.run.path / run_directory.REPORT}")
        return lm

    def record_settings(self) -> None:
        """config.toml, with the digests of the texts; an error if those of a run that goes on have changed."""
        run, table = self.settings["run"], self.settings["data"]
        files = [pathlib.Path(t) for t in table["text"]]
        before = table.get("digests")
        if before is None:
            table["digests"] = [checkpoint.digest(f) for f in _all_files(files)]
        elif all(f.exists() for f in files):
            now = [checkpoint.digest(f) for f in _all_files(files)]
            if now != before:
                raise ArgumentError(
                    f"the text has changed since this run began ({', '.join(table['text'])}): "
                    "it can go on with the old text, or begin again in another directory"
                )
        with atomic_write(self.run.path / run_directory.CONFIG) as f:
            f.write(settings.dumps(self.settings, recipes.defaults(run["family"], run["size"])).encode())

    def tokenizer(self) -> tokenizers.Tokenizer:
        """The tokenizer that was named, or one that is trained on the text; a copy is in the directory."""
        folder, table = self.run.path / "tokenizer", self.settings["data"]
        if not folder.exists():
            kind = table["tokenizer"]
            if pathlib.Path(kind).is_dir():
                made = tokenizers.load_tokenizer(kind)
            else:
                self.run.say(f"training a {kind} tokenizer of {table['vocab']:,} tokens")
                family = self.settings["run"]["family"]
                made = plm.train_tokenizer(
                    table["text"], kind=kind, vocab_size=table["vocab"], family=_format(kind, family)
                )
            _whole(folder, made.save)
        return tokenizers.load_tokenizer(folder)

    def corpus(self, tokenizer: tokenizers.Tokenizer) -> data.Corpus:
        folder, table = self.run.path / "corpus", self.settings["data"]
        if not folder.exists():
            progress = Progress(1, "byte") if not self.run.quiet else None

            def show(done: int, total: int) -> None:
                if progress is not None:
                    progress.total = total
                    progress.update(done)

            options = {name: table[name] for name in ("documents", "sentences", "unwrap")}
            data.write_corpus(folder, table["text"], tokenizer, progress=show, **options)
            if progress is not None:
                progress.clear()
        return data.Corpus.open(folder)

    def trainer(self, tokenizer: tokenizers.Tokenizer, corpus: data.Corpus) -> Trainer:
        seed, table, options = self.settings["run"]["seed"], self.settings["data"], self.settings["train"]
        for_training, for_evaluation = held_out.split(corpus, table["held_out"])
        batches: Any = data.Batches(self.objective(for_training, tokenizer), table["batch"], seed=seed)
        if table["accumulate"] > 1:
            batches = batching.Accumulated(batches, table["accumulate"])
        evaluate = None
        if for_evaluation is not None:
            held = data.Batches(
                self.objective(for_evaluation, tokenizer), table["batch"], seed=seed, shuffle=False, drop_last=False
            )
            evaluate = held_out.HeldOutLoss(held, min(options["evaluate_batches"], held.steps_per_epoch(0)))
        plm.seed(seed)
        model = models.build(self.model_config(tokenizer), self.settings["model"]["head"])
        callbacks = [*self.callbacks]
        if for_evaluation is not None and self.settings["objective"]["name"] == "causal-lm":
            callbacks.insert(0, self.sampler(tokenizer, for_evaluation))
        if options["recompute"]:
            recompute_blocks(model)
        if options["tensorboard"]:
            self.run.tensorboard = tensorboard.writer(self.run.path)
        trainer = Trainer(
            model, batching.Ahead(batches), self.optimizer(model), steps=options["steps"], schedule=self.schedule(), seed=seed,
            loss=batching.MeanLoss(model, options["label_smoothing"]), clip_norm=self.settings["optim"]["clip_norm"],
            nonfinite=options["nonfinite"], average=None if options["average"] is None else optim.EMA(model.parameters(), options["average"]),
            directory=self.run, save_every=options["save_every"], keep=options["keep"], log_every=options["log_every"],
            evaluate=evaluate, evaluate_every=options["evaluate_every"], patience=options["patience"],
            callbacks=callbacks, data=corpus.fingerprint,
        )  # fmt: skip
        saved = self.run.newest()
        if saved is not None:
            trainer.restore(saved)
            self.run.say(f"going on from step {saved.step}")
        self.run.forget_after(trainer.step)
        return trainer

    def sampler(self, tokenizer: tokenizers.Tokenizer, corpus: data.Corpus) -> Callable:
        """After each evaluation: how the model goes on from the beginning of the held-out text."""
        prompt = np.asarray(corpus.ids[:PROMPT], np.int64)

        def sample(trainer: Trainer, metrics: Mapping[str, float]) -> None:
            if trainer.score is not None:
                ids = sampling.continuation(trainer.model, prompt, SAMPLE, seed=trainer.seed)
                text = tokenizer.decode(np.concatenate([prompt, ids]))
                self.run.record({"step": trainer.step, "sample": text})

        return sample

    def objective(self, corpus: data.Corpus, tokenizer: tokenizers.Tokenizer) -> objectives.Objective:
        table = {k: v for k, v in self.settings["objective"].items() if v is not None}
        return objectives.make(table.pop("name"), corpus, tokenizer, length=self.settings["data"]["length"], **table)

    def model_config(self, tokenizer: tokenizers.Tokenizer) -> models.config.Config:
        """The size, and what the tokenizer knows: the number of tokens and the special ones."""
        kind = run_settings.config_class(self.settings["run"]["family"])
        known = {f.name for f in dataclasses.fields(kind)}
        values = {k: v for k, v in self.settings["model"].items() if v is not None and k != "head"}
        special = {f"{role}_token_id": getattr(tokenizer, f"{role}_token_id") for role in ("pad", "bos", "eos")}
        special["decoder_start_token_id"] = tokenizer.eos_token_id
        if self.settings["run"]["family"] == "t5":
            special["decoder_start_token_id"] = tokenizer.pad_token_id
        special = {k: v for k, v in special.items() if v is not None}
        values = {"vocab_size": tokenizer.vocab_size} | {k: v for k, v in special.items() if k in known} | values
        extra = {k: v for k, v in special.items() if k not in known and k != "decoder_start_token_id"}
        return kind(**values, extra=extra)

    def optimizer(self, model) -> optim.Optimizer:
        table = self.settings["optim"]
        kind = optim.KINDS.get(table["kind"])
        if kind is None:
            raise SettingError(f"optim.kind must be one of {', '.join(optim.KINDS)}, got {table['kind']!r}")
        takes = inspect.signature(kind.__init__).parameters
        options = {k: v for k, v in table.items() if k in takes and k not in ("lr", "weight_decay") and v is not None}
        if kind is optim.Adafactor:
            options.pop("eps", None)
        params = groups.parameter_groups(
            model, lr=table["lr"], weight_decay=table["weight_decay"], layer_decay=table["layer_decay"]
        )
        return kind(params, lr=table["lr"], **options)

    def schedule(self) -> schedules.Schedule:
        table = {k: v for k, v in self.settings["schedule"].items() if v is not None}
        kind = schedules.KINDS.get(table.pop("kind"))
        if kind is None:
            raise SettingError(f"schedule.kind must be one of {', '.join(schedules.KINDS)}")
        takes = inspect.signature(kind).parameters
        table["steps"] = self.settings["train"]["steps"]
        return kind(**{k: v for k, v in table.items() if k in takes})

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

    def finish(self, trainer: Trainer, tokenizer: tokenizers.Tokenizer) -> language_model.LanguageModel:
        """DIR/final, with the average of the parameters where there is one."""
        if trainer.average is not None:
            for p, a in zip(trainer.average.params, trainer.average.averages, strict=True):
                plm._core.assign(p, a)
        lm = language_model.LanguageModel(trainer.model.eval(), tokenizer)

        def save(folder: pathlib.Path) -> None:
            lm.save(folder)
            tokenizer.save(folder)

        _whole(self.run.final, save)
        lm.source = self.run.final
        return lm


def _format(kind: str, family: str) -> str | None:
    """The family whose special tokens a new tokenizer gets; characters and words have their own."""
    return None if kind in ("characters", "words") else family


def _whole(folder: pathlib.Path, save: Callable[[pathlib.Path], Any]) -> None:
    """A directory that is either whole or absent, in place of an earlier one."""
    temporary, old = (folder.with_name(f".{folder.name}.{kind}") for kind in ("partial", "old"))
    for left in (temporary, old):
        shutil.rmtree(left, ignore_errors=True)
    temporary.mkdir()
    save(temporary)
    if folder.exists():
        os.rename(folder, old)
    os.rename(temporary, folder)
    sync_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _all_files(paths: Sequence[pathlib.Path]) -> list[pathlib.Path]:
    """Files, and those in folders, in order."""
    found = []
    for path in paths:
        found += sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return found
