"""Published tasks put to a language model that was not trained for them, from their files: the likeliest
choice or name of a class, or a text that the model writes (GPT-2, GPT-3).
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from plmcore._core import ArgumentError, FormatError
from plmcore.data import tables
from plmcore.data.readers import Record
from plmcore.data.tables import Table
from plmcore.evaluate import metrics
from plmcore.evaluate.choices import choose
from plmcore.evaluate.prompting import few_shot
from plmcore.tasks import labels, task_settings
from plmcore.tasks.evaluation import FileData
from plmcore.tasks.inference import needed_tokenizer

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel

HEADS = ("causal-lm", "seq2seq-lm")
KINDS = ("classification", "pair", "multiple-choice", "qa", "seq2seq")
BLANK = "XXXXX"  # the word that the Children's Book Test leaves out
TEMPLATES = {
    "classification": "{text}\nAnswer:",
    "pair": "{text}\n{pair}\nAnswer:",
    "qa": "{context}\nQ: {question}\nA:",
    "seq2seq": "{source} =",
    "race": "{context}\nQ: {question}\nA:",
}
SHORT, LONGEST = 16, {"seq2seq": 64}  # tokens that are written for an answer


def is_for(lm: LanguageModel, task: str) -> bool:
    """Whether a task must be put to a model as text: it has no head that was trained for it, and does not
    write the answers as T5 does.
    """
    kind = task_settings.kind_of(task)
    writes = lm.head == "seq2seq-lm" and (
        kind == "seq2seq" or task_settings.remembered(lm.config).get("as_text")
    )
    return lm.head in HEADS and kind in KINDS and not writes


def score(
    lm: LanguageModel,
    path: pathlib.Path | list[Record],
    task: str,
    *,
    split: str | None = None,
    columns: Sequence[str] | None = None,
    shots: str | os.PathLike[str] | Table | None = None,
    k: int | None = None,
    template: str | None = None,
    errors: str = "strict",
    **options: Any,
) -> dict[str, Any]:
    """The task's metrics on a file or on the folder of a published task.

    `shots` is a file of the task whose records are solved before each, `k` of them; `template` says how a
    record reads, with its fields in braces; other options are those of evaluate.few_shot, or of
    evaluate.choose.
    """
    needed_tokenizer(lm, "evaluate")
    table = {"columns": list(columns or []), "errors": errors}
    data = _data(lm, path, task, split, table)
    solved: list[Record] = []
    if shots is not None:
        if k is None:
            raise ArgumentError("evaluate: k says how many of the shots stand before each record")
        example = tables.rows(shots, "shots") if tables.is_table(shots) else pathlib.Path(cast(str, shots))
        solved = [r for rs in _asked(_data(lm, example, task, None, table)).values() for r in rs]
    scores: dict[str, Any] = {}
    asked = _asked(data)
    for name, records in asked.items():
        found = _score(lm, task, data.kind_in_file, records, solved, k or 0, template, options)
        found["records"] = len(records)
        scores |= {f"{name}_{key}": value for key, value in found.items()} if len(asked) > 1 else found
    return scores


def _data(
    lm: LanguageModel,
    path: pathlib.Path | list[Record],
    task: str,
    split: str | None,
    table: Mapping[str, Any],
) -> FileData:
    chosen = task_settings.of_use(task, lm.config, {"data": dict(table)})
    data = FileData(chosen, path, lm.config, split)
    if data.kind == "classification":
        data.names = list(data.published.labels)
    return data


def _asked(data: FileData) -> dict[str, list[Record]]:
    """Of each split its records as evaluate.few_shot has them: with choices and label, or with answers."""
    found = {}
    for split, records in data.records.items():
        if hidden := next((r for r in records if not data.labelled(r)), None):
            raise labels.at(hidden, data.path(split), "there is no label, and nothing to score")
        if data.kind == "qa":
            new: list[Mapping[str, Any]] = [
                {"answers": [a["text"] for a in r["answers"]] or [""]} for r in records
            ]
        elif data.kind == "seq2seq":
            new = [{"answer": r["target"]} for r in records]
        else:
            names = [name.replace("_", " ") for name in data.names]
            new = [
                {"choices": r.get("choices") or names, "label": n}
                for r, n in zip(records, data.targets(split))
            ]
        found[split] = [{**r, **n} for r, n in zip(records, new, strict=True)]
    return found


def _score(
    lm: LanguageModel,
    task: str,
    kind: str,
    records: Sequence[Record],
    solved: Sequence[Record],
    k: int,
    template: str | None,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    names = list(metrics.TASKS.get(task.replace("-", "_")) or task_settings.METRICS[kind])
    template = template or TEMPLATES.get(task) or TEMPLATES.get(kind)
    if template is not None and "choices" not in records[0]:
        options = {"max_new_tokens": LONGEST.get(kind, SHORT), **options}
        cut = [_cut(lm, r, template, options["max_new_tokens"]) for r in records]
        return few_shot(lm, cut, solved, k, template=template, metric=names, **options).scores
    if solved or "instruction" in options:
        if template is None:
            raise ArgumentError(f"evaluate: solved records of {task} need a template that says how they read")
        found: Sequence[Any] = few_shot(lm, records, solved, k, template=template, **options).predictions
    else:
        if unknown := sorted({*options} - {"normalise", "start", "batch_tokens"}):
            raise ArgumentError(f"evaluate: {unknown[0]} means nothing to {task}, whose choices are compared")
        found = choose(lm, [_continued(r, template) for r in records], **options).predictions.tolist()
    return metrics.compute(names, found, [r["label"] for r in records])


def _cut(lm: LanguageModel, record: Record, template: str, new: int) -> Record:
    """A context that leaves no room for an answer of `new` tokens loses its first words."""
    longest, tokenizer = lm.config.longest, needed_tokenizer(lm, "evaluate")
    if longest is None or "context" not in record:
        return record
    words = record["context"].split(" ")
    most = len(words)
    while most and len(tokenizer(template.format(**record)).input_ids) > longest - new:
        most = most * 7 // 8
        record = {**record, "context": " ".join(words[len(words) - most :])}
    return record


def _continued(record: Record, template: str | None) -> Record:
    """Context and question, or the template, with choices that follow; a choice that fills a blank goes on
    with what stands behind it.
    """
    if template is not None:
        return {
            "context": template.format(**record),
            "choices": [f" {c.strip()}" for c in record["choices"]],
            "label": record["label"],
        }
    before, blank, behind = record["question"].partition(BLANK)
    if record["question"] and not blank:
        before, behind = record["question"], ""
    context = " ".join(filter(None, (record["context"], before.strip())))
    if not context:
        raise FormatError(f"{record['line']}: there is nothing that the choices follow")
    return {
        "context": context,
        "choices": [f" {c.strip()}{behind}" for c in record["choices"]],
        "label": record["label"],
    }
