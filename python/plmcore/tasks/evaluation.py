"""The scores of a fine-tuned model on a file that it has not seen."""

from __future__ import annotations

import functools
import json
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plmcore._core import ArgumentError, FormatError
from plmcore.data.readers import Record
from plmcore.evaluate import metrics
from plmcore.files import atomic_write
from plmcore.tasks import task_model, task_settings
from plmcore.tasks.features import Features
from plmcore.tasks.scoring import Scoring
from plmcore.tasks.task_data import TaskData
from plmcore.train import settings

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel


class FileData(TaskData):
    """The records of data.test, with the classes of the model."""

    def __init__(self, chosen: settings.Settings, lm: LanguageModel):
        super().__init__(chosen)
        self.config = lm.config

    @functools.cached_property
    def records(self) -> dict[str, list[Record]]:
        return {"test": self._read("test")}

    @functools.cached_property
    def names(self) -> list[str]:
        if self.kind not in ("classification", "pair", "tagging"):
            return []
        known = self.config.extra.get("id2label") or {}
        if self.as_text:
            stored = [known[str(i)] for i in range(len(known))]
            names = list(self.table["labels"]) or stored or self.declared_names(self.records["test"])
            if not names:
                raise ArgumentError("evaluate: this model writes classes that it does not name; data.labels must")
            return names
        return [known.get(str(i), f"LABEL_{i}") for i in range(self.config.num_labels)]


def score(
    lm: LanguageModel,
    path: pathlib.Path,
    task: str,
    *,
    columns: Sequence[str] | None = None,
    changes: Sequence[str] = (),
    predictions: str | os.PathLike[str] | None = None,
    errors: str = "strict",
) -> dict[str, Any]:
    """Loss and metrics on a file as finetune's `test`. `changes` are settings of a fine-tuning run as "task.prefix=translate: "; `predictions` is a
    file to write, one object for each record."""
    given = {
        "data": {"test": os.fspath(path), "columns": list(columns or []), "errors": errors},
        "task": {"lm_weight": 0.0},
    }
    chosen = task_settings.of_use(task, lm.config, given, changes)
    metrics.check_installed(chosen["task"]["metrics"])
    data = FileData(chosen, lm)
    if data.kind == "lm":
        raise ArgumentError("evaluate: text is scored by the task perplexity")
    needed = task_model.head_for("seq2seq" if data.as_text else data.kind, lm.config)
    if not isinstance(lm.model, Features) and lm.head != needed:
        raise ArgumentError(f"evaluate: this model has the head {lm.head}, and {task} needs {needed}: plmcore finetune")
    if lm.tokenizer is None:
        raise ArgumentError("evaluate: this model has no tokenizer; load it from a directory with tokenizer files")
    if data.kind == "qa":
        chosen["task"]["unanswerable"] = any(r["impossible"] for r in data.records["test"])
    examples = data.examples("test", lm.tokenizer, lm.model)
    if not examples.known and predictions is None:
        raise FormatError(
            f"'{path}': not every record has a label, so that there are no scores; name a file for predictions"
        )
    scoring = Scoring(examples, chosen["data"]["batch"], final=True)
    found = scoring(lm.model)
    if predictions is not None:
        with atomic_write(predictions) as f:
            f.writelines((json.dumps(p, ensure_ascii=False) + "\n").encode() for p in scoring.predictions)
    return {**found, "records": len(data.records["test"])}
