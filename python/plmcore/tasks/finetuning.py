"""From a model directory and labelled examples to a model for a task."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from plmcore import criteria, data, language_model
from plmcore.data import tables
from plmcore.data.tables import Table
from plmcore.data.tasks import SPLITS
from plmcore.files.whole import atomic_directory, atomic_write, json_bytes
from plmcore.language_model import directory
from plmcore.tasks import adapting, cross_view, language_modelling, task_model, task_settings
from plmcore.tasks.inference import needed_tokenizer
from plmcore.tasks.language_modelling import TextExamples
from plmcore.tasks.scoring import Scoring
from plmcore.tasks.task_data import TaskData
from plmcore.train import batching, extending, hints, making, run_directory
from plmcore.train.loop import Trainer
from plmcore.train.run import Run
from plmcore.train.settings import SettingError, Settings
from plmcore.train.training import Training

if TYPE_CHECKING:
    from plmcore.models.cross_view import CrossView

SCORES = "scores.json"
SHOWN = 4  # predictions in the report


@hints.hinted
def finetune(
    model: str | os.PathLike[str] | None = None,
    task: str | None = None,
    *,
    out: str | os.PathLike[str],
    train: str | os.PathLike[str] | Table | None = None,
    dev: str | os.PathLike[str] | Table | None = None,
    test: str | os.PathLike[str] | Table | None = None,
    folder: str | os.PathLike[str] | None = None,
    unlabelled: str | os.PathLike[str] | None = None,
    also: Sequence[Mapping[str, Any]] | None = None,
    columns: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    lr: float | None = None,
    batch: int | None = None,
    lora: int | None = None,
    save_every: int | None = None,
    seed: int | None = None,
    device: str | None = None,
    errors: str | None = None,
    config: str | os.PathLike[str] | None = None,
    changes: Sequence[str] = (),
    resume: bool = False,
    quiet: bool = False,
    callbacks: Sequence[Callable[[Trainer, Mapping[str, float]], None]] = (),
) -> language_model.LanguageModel:
    """Trains the model of a directory for a task.

    Writes the model to `out`/final and the scores to `out`/scores.json; returns the model.

    `task` is a kind (classification, pair, regression, multiple-choice, tagging, qa, seq2seq, lm) with files,
    or a published task (sst2, snli, ...) with files or with its `folder`.
    A file may also be a table in memory: a list of dicts, a dict of lists,
    a pandas DataFrame or a pyarrow Table; the run keeps a copy in `out`. `columns` as in tasks.records.read.
    `config` is the config.toml of another run, `changes` are settings as "optim.lr=3e-4";
    `lr`, `batch`, `lora` and `device` are optim.lr, data.batch, adapt.lora_rank and run.device.
    `unlabelled` is text, a sentence on each line, for models that learn from it too (cvt); `also` are further
    tasks of such a model: {"name": "pos", "task": "tagging", "train": "pos.txt", "dev": "pos-dev.txt"}.
    errors="replace" reads bytes that are not UTF-8 as U+FFFD. resume=True continues a stopped run, bit for
    bit.
    """
    out = pathlib.Path(out)
    paths: dict[str, Any] = {"train": train, "dev": dev, "test": test, "folder": folder}
    others = {
        k: v for k, v in paths.items() if k in SPLITS and not isinstance(v, (str, os.PathLike, type(None)))
    }
    in_memory = {split: tables.rows(table, split) for split, table in others.items()}
    paths |= {split: out.absolute() / f"{split}{tables.KEPT}" for split in in_memory}
    given: Settings = {
        "run": {
            "task": task,
            "model": None if model is None else os.fspath(model),
            "seed": seed,
            "device": device,
        },
        "data": {k: None if v is None else os.fspath(v) for k, v in paths.items()}
        | {
            "unlabelled": None if unlabelled is None else os.fspath(unlabelled),
            "also": also and [dict(table) for table in also],
            "columns": columns and list(columns),
            "labels": labels and list(labels),
            "batch": batch,
            "errors": errors,
        },
        "optim": {"lr": lr},
        "adapt": {"lora_rank": lora},
        "train": {"epochs": epochs, "steps": steps, "save_every": save_every},
    }
    run = _Finetuning(
        out,
        given,
        in_memory=in_memory,
        config=config,
        changes=changes,
        resume=resume,
        quiet=quiet,
        callbacks=callbacks,
    )
    return run()


class _Finetuning(Run):
    def new(self, given: Settings, config: str | os.PathLike[str] | None, changes: Sequence[str]) -> Settings:
        return task_settings.new(given, config, changes)

    def resumed(
        self,
        begun: pathlib.Path,
        given: Settings,
        config: str | os.PathLike[str] | None,
        changes: Sequence[str],
    ) -> Settings:
        return task_settings.resumed(begun, given, config, changes)

    def __init__(
        self,
        out: str | os.PathLike[str],
        given: Settings,
        *,
        in_memory: Mapping[str, Any],
        **options: Any,
    ):
        super().__init__(out, given, **options)
        if self.begun:
            kept = {split: self.path.absolute() / f"{split}{tables.KEPT}" for split in SPLITS}
            # where `out` is now
            self.settings["data"] |= {
                split: os.fspath(path) for split, path in kept.items() if path.is_file()
            }
        task_settings.check_installed(self.settings)
        self.data = TaskData(self.settings, in_memory)
        self.data.check()
        task_model.needed_head(directory.read_config(self.settings["run"]["model"]), self.data)

    def defaults(self, stored: Settings) -> Settings:
        return task_settings.defaults(stored["run"]["task"], stored["run"]["model"])

    # ---- training ----

    def training(self) -> Trainer:
        run, options, table = (self.settings[key] for key in ("run", "train", "data"))
        self.lm = lm = task_model.load(pathlib.Path(run["model"]), self.data, self.directory.say)
        if lm.source is not None:
            directory.companions(lm.source)  # which the result gets, hours from now
        adapting.prepare(lm.model, self.settings["adapt"], run["seed"], task_model.fresh_names(lm))
        lm.to(run["device"])
        self.examples = self.make_examples(lm)
        batches: Any = self.batches(self.examples["train"])
        criterion: criteria.Criterion = self.examples["train"].criterion(lm.model)
        if cross_view.learns(lm.config, lm.head):
            tokenizer = needed_tokenizer(lm, "finetune")
            batches = cross_view.batches(lm, self.data, batches, tokenizer, **self.order)
            criterion = criteria.CrossView(cast("CrossView", lm.model))
        trained: Any = lm.model
        evaluate = self.scoring(self.data.watched) if self.data.watched else None
        if table["unlabelled"] and self.data.kind == "seq2seq":
            tokenizer = needed_tokenizer(lm, "finetune")
            trained, batches, criterion = cross_view.translation(
                lm, self.data, batches, criterion, tokenizer, **self.order
            )
            evaluate = evaluate and cross_view.OfPrimary(evaluate.examples, table["batch"])
        per_epoch = batches.steps_per_epoch(0)
        if table["accumulate"] > 1:
            batches, per_epoch = (
                batching.Accumulated(batches, table["accumulate"]),
                max(1, per_epoch // table["accumulate"]),
            )
        steps = options["steps"] or options["epochs"] * per_epoch
        schedule = dict(self.settings["schedule"])
        ends = extending.ends(options, steps, per_epoch)
        if schedule["warmup"] is None:
            schedule["warmup"] = round(options["warmup_share"] * [*ends, steps][0])
            if options["most_warmup"] is not None:
                schedule["warmup"] = max(1, min(schedule["warmup"], options["most_warmup"]))
        self.unfreezing = adapting.unfreezing(lm.model, self.settings["adapt"], per_epoch)
        return making.trainer(
            self.settings | {"schedule": schedule},
            trained,
            batches,
            criterion=criterion,
            options=self.options(
                steps=steps,
                ends=ends,
                **{key: options[key] or per_epoch for key in ("save_every", "evaluate_every")},
                evaluate=evaluate,
                callbacks=[*([self.unfreezing] if self.unfreezing else []), *self.callbacks],
                data=self.data.fingerprint,
            ),
        )

    @property
    def order(self) -> dict[str, Any]:
        """What the order of examples depends on."""
        return dict(seed=self.settings["run"]["seed"], rank=self.group.rank, ranks=self.group.size)

    def batches(self, examples: Any) -> Any:
        """To train on. A last batch that is smaller than the model can learn from is left out."""
        if self.data.kind == "lm":
            return examples.batches(**self.order)
        batch = self.settings["data"]["batch"]
        if batch < 1:
            raise SettingError(f"data.batch must be at least 1, got {batch}")
        rest = examples.examples(0) % (batch * self.group.size) // self.group.size
        least = getattr(self.lm.model, "LEAST_ROWS", 1)
        return data.Batches(examples, batch, drop_last=0 < rest < least, **self.order)

    def started(self, training: Training) -> None:
        if self.unfreezing:
            self.unfreezing(training, {})
        self.keep_tables()
        self.record_settings()
        if len(self.examples) == 1 and training.step == 0:
            self.directory.say(
                "nothing is evaluated: name files with --dev or --test, or set data.held_out=0.1"
            )

    def announcement(self, training: Training) -> str:
        lm = self.lm
        return (
            f"{lm.config.model_type} for {self.settings['run']['task']}, {lm.model.num_parameters():,} "
            f"parameters ({sum(p.size for p in lm.parameters() if p.requires_grad):,} trained); "
            f"{self.examples['train'].examples(0):,} examples"
        )

    def make_examples(self, lm: language_model.LanguageModel) -> dict[str, Any]:
        table = self.settings["data"]
        if self.data.kind == "lm":
            self.keep_tables()
            corpora = {s: self.path / f"corpus-{s}" for s in SPLITS if table[s]}
            for split, folder in corpora.items():
                if not ((self.begun or self.group.rank) and folder.exists()):
                    language_modelling.write_corpus(folder, table[split], lm, table["errors"])
            common = (lm, table["length"], table["batch"], self.settings["train"])
            return {s: TextExamples(folder, *common) for s, folder in corpora.items()}
        made = {
            split: self.data.examples(split, needed_tokenizer(lm, "finetune"), lm.model)
            for split in self.data.records
        }
        for split, examples in made.items():
            if not examples.known:
                self.directory.say(
                    f"{split}: not every record has a label, so that there are predictions and no scores"
                )
            elif split != "train":
                examples.scores(examples.right())  # a metric that is not for such labels is found now
            if blank := self.data.blank(split):
                self.directory.say(f"{split}: {blank} of {len(self.data.records[split])} texts are empty")
            if examples.cut:
                self.directory.say(f"{split}: {examples.cut} texts have more than {table['length']} tokens")
        return made

    def scoring(self, split: str, *, final: bool = False) -> Any:
        examples, batch = self.examples[split], self.settings["data"]["batch"]
        return examples.scoring(batch) if self.data.kind == "lm" else Scoring(examples, batch, final=final)

    # ---- what is left behind ----

    def keep_tables(self) -> None:
        if self.group.rank == 0:
            self.data.keep_tables()

    @property
    def title(self) -> str:
        task: str = self.settings["run"]["task"]
        return task

    def facts(self, training: Training) -> dict[str, Any]:
        name = pathlib.Path(self.settings["run"]["model"]).name
        return {"model": f"{name}, {training.model.num_parameters():,} parameters", "task": self.title}

    def result(self, training: Training) -> language_model.LanguageModel:
        return self.lm

    def finish(self, training: Training) -> None:
        self.lm.model.eval()
        adapting.finish(self.lm.model, self.settings["adapt"], self.path, self.settings["run"]["model"])
        with atomic_directory(self.directory.final) as folder:
            self.lm.save(folder)
            needed_tokenizer(self.lm, "finetune").save(folder)
        self.score(cast("Trainer", training))
        self.report(training)

    def shown(self, split: str, predictions: Sequence[str]) -> str:
        """The first records of a split, each with what was predicted, for the report."""
        left_out = ("line", "title", "id")
        given = [
            {k: v for k, v in r.items() if k not in left_out and v is not None}
            for r in self.data.records[split]
        ]
        pairs = zip([json_bytes(r).decode().rstrip("\n") for r in given[:SHOWN]], predictions)
        return "\n\n".join(f"{record}\n-> {predicted}" for record, predicted in pairs)

    def final_scoring(self, split: str, trainer: Trainer) -> Any:
        """What was found after the last step, where that is the result; else it is found now."""
        watched: Any = trainer.evaluate
        adapt = self.settings["adapt"]
        last = (
            trainer.average is None and self.settings["train"]["result"] == "last" and not adapt["lora_rank"]
        )
        if (
            split == self.data.watched
            and last
            and trainer.score is not None
            and watched.found is not None
            and not self.examples[split].generates
        ):
            return watched
        scoring = self.scoring(split, final=True)
        scoring(self.lm.model)
        return scoring

    def score(self, trainer: Trainer) -> None:
        """scores.json, metrics, and a file of predictions, for what was not learnt from."""
        scores = {}
        scorings = {split: self.final_scoring(split, trainer) for split in self.examples if split != "train"}
        if self.data.further:
            tokenizer = needed_tokenizer(self.lm, "finetune")
            scorings |= cross_view.further_scores(self.lm, self.data, tokenizer)
        for split, scoring in scorings.items():
            scores[split] = scoring.found
            if self.data.kind != "lm":
                lines = [json_bytes(p).decode().rstrip("\n") for p in scoring.predictions]
                with atomic_write(self.path / f"{split}-predictions.jsonl") as f:
                    f.write("".join(line + "\n" for line in lines).encode())
                if split in self.examples:
                    self.directory.record({"step": trainer.step, "sample": self.shown(split, lines)})
            if scores[split]:
                self.directory.record(
                    {"step": trainer.step, **{f"{split}_{k}": v for k, v in scores[split].items()}}
                )
                # BLEU has a signature
                numbers = {k: v for k, v in scores[split].items() if not isinstance(v, str)}
                self.directory.say(f"{split}: " + ", ".join(f"{k} {v:.4g}" for k, v in numbers.items()))
        with atomic_write(self.path / SCORES) as f:
            f.write(
                (
                    json.dumps({k: run_directory.finite(v) for k, v in scores.items()}, indent=2) + "\n"
                ).encode()
            )
