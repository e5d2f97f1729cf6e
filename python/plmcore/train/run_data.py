"""What a run makes of its text: a tokenizer, a corpus, batches to train on and to evaluate on."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plmcore import criteria, data, models, nn, objectives, tokenizers
from plmcore._core import ArgumentError, FormatError
from plmcore.files.text import check_text
from plmcore.files.whole import atomic_directory
from plmcore.models import labels
from plmcore.runtime.progress import Progress
from plmcore.train import batching, carrying, checkpoint, held_out, ranks, recipes, supervised
from plmcore.train.run_directory import RunDirectory
from plmcore.train.settings import Settings

SMALL = 2_000_000  # bytes of text
MIXTURE = "mixture"  # folder of the supervised examples
Pieces = tuple[data.Corpus, ...]
Tables = dict[str, list[supervised.Pair]]


class RunData:
    """The data of one run, made when it is first asked for and kept in the run's directory.

    Translations have two corpora, document by document, all others one.
    Supervised tasks may be mixed with it.
    """

    def __init__(self, run: RunDirectory, settings: Settings):
        self.run, self.settings, self.table = run, settings, settings["data"]
        self.mixture = settings.get("mixture", {"tables": []})

    # ---- the text ----

    @property
    def sources(self) -> dict[str, list[str]]:
        """Name of a corpus -> its files."""
        return {"corpus": self.table["text"]} | (
            {"target": self.table["target"]} if self.table["target"] else {}
        )

    def check_texts(self) -> None:
        """Notes the digests of the texts among the settings;
        an error if those of a run that goes on have changed.
        """
        named = [t for texts in self.sources.values() for t in texts]
        files = [pathlib.Path(t) for t in (*named, *(table["file"] for table in self.mixture["tables"]))]
        before = self.table.get("digests")
        for name, texts in self.sources.items():
            if not (self.run.path / name).exists():
                check_text(texts)
        if before is not None and not all(f.exists() for f in files):
            return  # the corpora are enough
        now = [checkpoint.digest(f) for f in all_files(files)]
        if before is not None and now != before:
            raise ArgumentError(
                f"the text has changed since this run began ({', '.join(map(str, files))}): "
                "it can go on with the old text, or begin again in another directory"
            )
        self.table["digests"] = now

    @functools.cached_property
    def tokenizer(self) -> tokenizers.Tokenizer:
        """The tokenizer that was named, or one that is trained on text and tables;
        a copy is in the directory.
        """
        folder = self.run.path / "tokenizer"
        if not folder.exists():
            kind = self.table["tokenizer"]
            if pathlib.Path(kind).is_dir():
                made = tokenizers.load_tokenizer(kind)
            else:
                self.run.note(f"training a {kind} tokenizer of {self.table['vocab']:,} tokens")
                files: list[Any] = [*(t for texts in self.sources.values() for t in texts), *self.table_files]
                family = format_of(kind, self.settings["run"]["family"])
                try:
                    made = tokenizers.train_tokenizer(
                        files,
                        kind=kind,
                        vocab_size=None if self.reads_all_words else self.table["vocab"],
                        family=family,
                        errors=self.table["errors"],
                    )
                except ArgumentError as e:
                    raise ArgumentError(f"data.tokenizer and data.vocab: {e}") from None
            with atomic_directory(folder) as new:
                made.save(new)
        return tokenizers.load_tokenizer(folder)

    @property
    def reads_all_words(self) -> bool:
        """Whether words are known that the model is not to predict."""
        spells = recipes.recipe(self.settings["run"]["family"]).spells
        return spells and self.table["tokenizer"] == "words"

    @functools.cached_property
    def corpora(self) -> Pieces:
        if len(self.sources) == 2 and not (self.run.path / "target").exists():
            check_parallel(self.sources["corpus"], self.sources["target"], self.table["errors"])
        return tuple(self.corpus(name, texts) for name, texts in self.sources.items())

    def corpus(self, name: str, texts: Sequence[str]) -> data.Corpus:
        folder = self.run.path / name
        if not folder.exists():
            options = {key: self.table[key] for key in ("documents", "sentences", "unwrap", "errors")}
            size = sum(f.stat().st_size for f in all_files([pathlib.Path(t) for t in texts]))
            workers = 1 if size < SMALL else None  # starting processes takes longer than that
            with Progress(size, "B", quiet=self.run.quiet) as bar:
                data.write_corpus(
                    folder, texts, self.tokenizer, progress=bar.reach, workers=workers, **options
                )
        corpus = data.Corpus.open(folder)
        return held_out.backward(corpus) if self.settings["model"].get("backward") else corpus

    @functools.cached_property
    def tables(self) -> Tables:
        """Inputs and targets by supervised task."""
        folder, tables = self.run.path / MIXTURE, self.mixture["tables"]
        if tables and not folder.exists():
            supervised.write(folder, tables, self.table["errors"])
        return {table["task"]: supervised.read(folder, table["task"]) for table in tables}

    @property
    def table_files(self) -> list[pathlib.Path]:
        return [file for task in self.tables for file in supervised.files(self.run.path / MIXTURE, task)]

    @property
    def tokens(self) -> int:
        return sum(len(corpus.ids) for corpus in self.corpora)

    @property
    def fingerprint(self) -> str:
        return " ".join(
            [*(corpus.fingerprint for corpus in self.corpora), *map(checkpoint.digest, self.table_files)]
        )

    # ---- batches ----

    @functools.cached_property
    def parts(self) -> tuple[Pieces, Any]:
        """To train on, and to evaluate on."""
        share = self.table["held_out"]
        if len(self.corpora) == 1:
            first, second = held_out.split(self.corpora[0], share)
            return (first,), None if second is None else (second,)
        return held_out.split_documents(self.corpora, share)

    @functools.cached_property
    def table_parts(self) -> tuple[Tables, Tables]:
        """The same of the supervised tasks, those of the second part that have anything to evaluate on."""
        kept = {
            task: len(found) - int(len(found) * self.table["held_out"]) for task, found in self.tables.items()
        }
        second = {task: found[kept[task] :] for task, found in self.tables.items()}
        return (
            {task: found[: kept[task]] for task, found in self.tables.items()},
            {task: found for task, found in second.items() if found},
        )

    def batches(self, seed: int) -> Any:
        """bucket: examples of unequal lengths are put together by length.

        Streams come in the order of the text.
        """
        objective, group = self.mixed(), ranks.current()
        if objective.streams is not None and group.size > 1:
            raise ArgumentError(
                f"objective.streams go on from batch to batch in one process, and there are {group.size} "
                f"ranks: set objective.streams=none and train.mem_len=0"
            )
        if self.settings["train"].get("vary"):
            return self.accumulated(
                carrying.Varied(
                    getattr(objective, "packing").text, self.table["batch"], self.table["length"] - 1, seed
                )
            )
        batches: Any = data.Batches(
            objective,
            self.table["batch"],
            seed=seed,
            shuffle=objective.streams is None,
            bucket=len(self.corpora) > 1,
            rank=group.rank,
            ranks=group.size,
        )
        return self.accumulated(carrying.Continued(batches) if self.carries else batches)

    def accumulated(self, batches: Any) -> Any:
        """As many at a time as the settings say."""
        times, steps = self.table["accumulate"], self.table["ramp"]
        if steps:
            return batching.Accumulated(batches, batching.ramp(1, times, steps))
        return batches if times == 1 else batching.Accumulated(batches, times)

    def evaluation(self, seed: int, most: int) -> held_out.HeldOutLoss | None:
        if self.parts[1] is None:
            return None

        def loss(
            objective: objectives.Objective, others: Mapping[str, held_out.HeldOutLoss] = {}
        ) -> held_out.HeldOutLoss:
            batches = data.Batches(
                objective, objective.streams or self.table["batch"], seed=seed, shuffle=False, drop_last=False
            )
            count = min(most, batches.steps_per_epoch(0))
            if objective.streams is None:
                return held_out.HeldOutLoss(batches, count, others)
            return held_out.HeldOutLoss(carrying.Continued(batches), count, others, self.plain_criterion)

        tasks = {task: loss(self.supervised(task, found)) for task, found in self.table_parts[1].items()}
        return loss(self.held_out_objective(self.held_out_streams), tasks)

    def criterion(self, model: nn.Module, label_smoothing: float = 0.0) -> criteria.Criterion:
        """What is trained with: with a memory, or a state, where the settings give one."""
        if self.settings["train"].get("carry") and labels.NEXT in labels.taken(model):
            penalties = {key: self.settings["train"][key] for key in ("ar", "tar")}
            return criteria.Carried(label_smoothing, **penalties)
        return self.plain_criterion(model, label_smoothing)

    def plain_criterion(self, model: nn.Module, label_smoothing: float = 0.0) -> criteria.Criterion:
        """The same without penalties: what is evaluated with."""
        if self.settings["train"].get("carry"):
            both = labels.BIDIRECTIONAL in labels.taken(model)
            return (criteria.CarriedDirections if both else criteria.Carried)(label_smoothing)
        if not self.memory:
            return criteria.of(model, label_smoothing)
        kind, reuse = (
            objectives.labels_of(self.settings["objective"]["name"]),
            self.settings["objective"]["stride"],
        )
        return criteria.Remembered(kind, label_smoothing, length=self.memory, reuse=reuse)

    @property
    def memory(self) -> int:
        """Tokens that the model remembers from batch to batch."""
        return self.settings["train"].get("mem_len") or 0

    @property
    def carries(self) -> bool:
        """Whether batches go on where those before ended."""
        return bool(self.memory or self.settings["train"].get("carry"))

    @property
    def held_out_streams(self) -> int | None:
        """Few enough that each has several windows; none where nothing is carried, or for a short text."""
        windows = len(self.parts[1][0].ids) // self.table["length"]
        return max(1, min(self.table["batch"], windows // 4)) if self.carries and windows > 1 else None

    def mixed(self) -> objectives.Objective:
        """What is trained on: the text, and the supervised tasks beside it."""
        text = self.objective(self.parts[0], self.settings["objective"].get("streams"))
        if not self.tables:
            return text
        tasks = {task: self.supervised(task, found) for task, found in self.table_parts[0].items()}
        options = {key: self.mixture[key] for key in ("limit", "temperature")}
        mixture = objectives.Mixture(
            {supervised.TEXT: text, **tasks},
            self.tokenizer,
            rates=supervised.rates_of(self.mixture),
            **options,
        )
        self.run.say(
            "a mixture of " + ", ".join(f"{name} {rate:.3g}" for name, rate in mixture.rates.items())
        )
        return mixture

    def supervised(self, task: str, found: list[supervised.Pair]) -> objectives.Objective:
        casts = {task: lambda pair: (pair["source"], pair["target"])}
        lengths = (self.table["length"], self.mixture["target_length"])
        return objectives.TextToText({task: found}, self.tokenizer, *lengths, casts=casts)

    def objective(self, corpora: Pieces, streams: int | None = None) -> objectives.Objective:
        table = {k: v for k, v in self.settings["objective"].items() if v is not None and k != "streams"}
        table |= {} if streams is None else {"streams": streams}
        return objectives.make(
            table.pop("name"), *corpora, self.tokenizer, length=self.table["length"], **table
        )

    def held_out_objective(self, streams: int | None = None) -> objectives.Objective:
        try:
            return self.objective(self.parts[1], streams)
        except ValueError as e:
            share = self.table["held_out"]
            raise ArgumentError(
                f"the held-out part, the last {share:g} of the text: {e}. More text, a larger share or "
                f"none of it (--set data.held_out=0) helps, too"
            ) from None

    def prompt(self, count: int) -> np.ndarray:
        """The beginning of the held-out text, for a model that writes on from there."""
        return np.asarray(self.parts[1][0].ids[:count], np.int64)

    def shown(self, seed: int) -> list[dict[str, np.ndarray]]:
        """The first held-out example of the text and of each supervised task, for a model that answers."""
        first = [self.held_out_objective()]
        first += [self.supervised(task, found[:1]) for task, found in self.table_parts[1].items()]
        return [objective.batch([0], seed=seed, epoch=0) for objective in first]


def format_of(kind: str, family: str) -> str | None:
    """The family whose special tokens a new tokenizer gets. Characters and words have their own, unless the
    family has a format for them, and its recipe, where it is one of words, does not name another's.
    """
    recipe = recipes.recipe(family)
    if kind not in ("characters", "words"):
        return recipe.special_tokens or family
    if recipe.tokenizer == kind and recipe.special_tokens is not None:
        return None
    return next((f.name for f in models.family(family).TOKENIZERS if kind in f.kinds), None)


def check_parallel(sources: Sequence[str], targets: Sequence[str], errors: str = "strict") -> None:
    """Each line needs a translation: corpora leave out empty lines,
    and what follows would no longer belong together.
    """
    if len(sources) != len(targets):
        raise ArgumentError(f"{len(sources)} files of text need as many of translations, got {len(targets)}")
    for source, target in zip(sources, targets, strict=True):
        for number, pair in enumerate(data.read_parallel(source, target, errors=errors), 1):
            for file, text in zip((source, target), pair.values(), strict=True):
                if not text.strip():
                    raise FormatError(
                        f"'{file}', line {number}: it is empty, and each line is to be translated"
                    )


def all_files(paths: Sequence[pathlib.Path]) -> list[pathlib.Path]:
    """Files, and those in folders, in order."""
    found: list[pathlib.Path] = []
    for path in paths:
        found += sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return found
