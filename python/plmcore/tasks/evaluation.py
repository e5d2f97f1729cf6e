"""The scores of a fine-tuned model on a file that it has not seen, or on the folder of a published task."""

from __future__ import annotations

import functools
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plmcore._core import ArgumentError, FormatError
from plmcore.data.readers import Record
from plmcore.evaluate import metrics
from plmcore.files.whole import atomic_write, json_bytes
from plmcore.models.config import Config
from plmcore.tasks import cross_view, ensemble, task_model, task_settings
from plmcore.tasks.features import Features
from plmcore.tasks.inference import needed_tokenizer
from plmcore.tasks.scoring import Scoring
from plmcore.tasks.task_data import TaskData
from plmcore.train import settings

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel


AVERAGED = ("classification", "pair", "regression")
TABLE = "table"  # stands for the name of a file


class FileData(TaskData):
    """The records of a file, as the split test, or of a published task's folder:
    of its split `split`, or else of those that have labels, for which the test splits are asked first.
    The classes are those of the model.
    """

    def __init__(
        self,
        chosen: settings.Settings,
        path: pathlib.Path | list[Record],
        config: Config,
        split: str | None = None,
        *,
        scored: bool = True,
    ):
        """`path` may also be the rows of a table in memory. `scored`: there must be labels."""
        super().__init__(chosen, {"test": path} if isinstance(path, list) else None)
        self.config, self.split, self.scored = config, split, scored
        if isinstance(path, list):
            if split is not None:
                raise ArgumentError(
                    "evaluate: a table in memory has no splits; a split is of the folder of a published task"
                )
            self.table["test"] = TABLE
            return
        published = path.is_dir() and self.declared is not None
        # a folder that is one split
        whole = published and split is None and self.published.read_file(path) is not None
        if split is not None and not published:
            raise ArgumentError(
                f"evaluate: '{path}' has no splits; a split is of the folder of a published task"
            )
        if path.is_dir() and not published:
            raise ArgumentError(
                f"evaluate: '{path}' is a folder, and {chosen['run']['task']} is scored on a file"
            )
        self.table["folder" if published and not whole else "test"] = os.fspath(path)

    def path(self, split: str) -> pathlib.Path:
        return pathlib.Path(TABLE) if split in self.in_memory else super().path(split)

    def needs_labels(self, split: str) -> bool:
        return self.scored and split in self.in_memory

    @functools.cached_property
    def splits(self) -> dict[str, list[str]]:
        return {"train": [], "dev": [], "test": list(self.records)}

    @functools.cached_property
    def records(self) -> dict[str, list[Record]]:
        if self.table["test"]:
            return {"test": self._read("test")}
        if self.split is not None:
            return {self.split: self._read(self.split)}
        found = self.published.splits_in(self.table["folder"])
        for splits in (found["test"], found["dev"]):
            read = {split: self._read(split) for split in splits}
            if labelled := {split: rs for split, rs in read.items() if all(map(self.labelled, rs))}:
                return labelled
        raise FileNotFoundError(
            f"'{self.table['folder']}' has no file of {self.published.name} with labels to score "
            f"({self._evaluated()})"
        )

    def labelled(self, record: Record) -> bool:
        of_kind = {"tagging": "tags", "qa": "answers", "seq2seq": "target"}
        return record[of_kind.get(self.kind, "label")] is not None

    @functools.cached_property
    def names(self) -> list[str]:
        if self.kind not in ("classification", "pair", "tagging"):
            return []
        known = self.config.extra.get("id2label") or {}
        if self.as_text:
            stored = [known[str(i)] for i in range(len(known))]
            first = next(iter(self.records.values()))
            names = list(self.table["labels"]) or stored or self.declared_names(first)
            if not names:
                raise ArgumentError(
                    "evaluate: this model writes classes that it does not name; data.labels must"
                )
            return names
        return [known.get(str(i), f"LABEL_{i}") for i in range(self.config.num_labels)]


def score(
    lm: LanguageModel,
    path: pathlib.Path | list[Record],
    task: str,
    *,
    split: str | None = None,
    columns: Sequence[str] | None = None,
    changes: Sequence[str] = (),
    predictions: str | os.PathLike[str] | None = None,
    errors: str = "strict",
    others: Sequence[LanguageModel] = (),
) -> dict[str, Any]:
    """Loss and metrics on a file as finetune's `test`, on the rows of a table in memory, or on the folder of
    a published task; where several of its splits are scored each has its name before those of the scores.
    `changes` are settings of a fine-tuning run as "task.prefix=translate: "; `predictions` is a file to
    write, one object for each record, or one file for each split. `others`: models for the same classes,
    whose predictions are averaged with this one's; there is no loss then.
    """
    given: settings.Settings = {
        "data": {"columns": list(columns or []), "errors": errors},
        "task": {"lm_weight": 0.0},
    }
    named = {k: v for _, k, v in map(settings.parse, changes) if k == "name"}
    lm = cross_view.of_task(lm, task_settings.kind_of(task), named.get("name"))
    chosen = task_settings.of_use(task, lm.config, given, changes)
    if task_settings.kind_of(task) == "lm":
        raise ArgumentError("evaluate: text is scored by the task perplexity")
    data = FileData(chosen, path, lm.config, split, scored=predictions is None)
    needed = task_model.head_for("seq2seq" if data.as_text else data.kind, lm.config)
    if not isinstance(lm.model, Features) and lm.head != needed:
        raise ArgumentError(
            f"evaluate: this model has the head {lm.head}, and {task} needs {needed}: plmcore finetune"
        )
    if others and (data.kind not in AVERAGED or data.as_text):
        raise ArgumentError(f"evaluate: models are averaged for {', '.join(AVERAGED)}, not for {task}")
    ensemble.check_same_classes(lm, others)
    needed_tokenizer(lm, "evaluate")
    metrics.check_installed(chosen["task"]["metrics"])
    if data.kind == "qa" and not any(change.startswith("task.unanswerable") for change in changes):
        there = any(r["impossible"] for rs in data.records.values() for r in rs)
        chosen["task"]["unanswerable"] |= there
    scores: dict[str, Any] = {}
    for name in data.records:
        several = len(data.records) > 1
        written = None if predictions is None else pathlib.Path(predictions)
        if written is not None and several:
            written = written.with_name(f"{written.stem}-{name}{written.suffix}")
        found = _score((lm, *others), data, name, written)
        scores |= {f"{name}_{key}": value for key, value in found.items()} if several else found
    return scores


def _score(
    models: Sequence[LanguageModel], data: FileData, split: str, predictions: pathlib.Path | None
) -> dict[str, Any]:
    each = [data.examples(split, needed_tokenizer(lm, "evaluate"), lm.model) for lm in models]
    examples = each[0]
    if not examples.known and predictions is None:
        raise FormatError(
            f"'{data.path(split)}': not every record has a label, so that there are no scores; name a "
            f"file for predictions"
        )
    scorings = [Scoring(own, data.table["batch"], final=True) for own in each]
    scores = [scoring(lm.model) for scoring, lm in zip(scorings, models)]
    found, predicted = scores[0], scorings[0].predictions
    if len(models) > 1:
        predicted = ensemble.averaged([scoring.predictions for scoring in scorings])
        found = examples.scores(predicted) if examples.known else {}
    if predictions is not None:
        with atomic_write(predictions) as f:
            f.writelines(map(json_bytes, predicted))
    return {**found, "records": len(data.records[split])}
