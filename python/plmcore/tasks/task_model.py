"""The model of a directory with the head that a task needs."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from plmcore import language_model, models
from plmcore._core import ArgumentError, manual_seed
from plmcore.language_model import directory
from plmcore.models import names, quantized
from plmcore.models.config import Config
from plmcore.tasks import (
    adapting,
    cross_view,
    decoder_format,
    language_modelling,
    new_vocabulary,
    task_settings,
)
from plmcore.tasks.features import Features, word_table
from plmcore.tasks.task_data import TaskData

if TYPE_CHECKING:
    from plmcore.models import Model

HEADS = {
    "tagging": "token-classification",
    "qa": "question-answering",
    "multiple-choice": "multiple-choice",
    "seq2seq": "seq2seq-lm",
}


def load(
    folder: pathlib.Path, task_data: TaskData, say: Callable[[str], None]
) -> language_model.LanguageModel:
    """What is new, the head and rows for new tokens, is drawn with the run's seed.

    Decoders get GPT-1's special tokens.
    """
    adapt, config = task_data.settings["adapt"], directory.read_config(folder)
    quantized.refuse(folder, config, "finetune")
    manual_seed(task_data.settings["run"]["seed"])
    reads, head = reads_layers(adapt), needed_head(config, task_data)
    changes = changes_for(task_data) | tasks_of(config, head, task_data)
    new_head = needs_new_head(config, head, task_data, changes)
    if head == models.head_of(config) and head in directory.TASK_HEADS:
        what = (
            "is new: that of the directory is for others"
            if new_head
            else "is that of the directory, and goes on learning"
        )
        say(f"the head {head} {what}")
    lm = language_model.read(folder, head, new_head=new_head, **changes, dtype="float32")
    for note in lm.notes:
        say(note)
    if lm.tokenizer is None:
        raise ArgumentError(f"'{folder}' has no tokenizer files, and texts must become ids")
    if adapt["vocab"] is not None:
        new_vocabulary.adopt(lm, task_data, adapt["vocab"])
    plain = task_data.kind == "lm" or getattr(lm.model, "PLAIN", False) or lm.tokenizer.spells
    if not plain and not decoder_format.has_format(lm.tokenizer):
        decoder_format.give_format(lm.tokenizer)
        if adapt["freeze"] is not None or adapt["lora_rank"]:
            tokens = ", ".join((decoder_format.START, decoder_format.DELIMITER, decoder_format.CLASSIFY))
            say(f"the rows of {tokens} are drawn at random, and do not learn: the token table is frozen")
        lm.model = decoder_format.grown(lm.model, lm.tokenizer)
    if more := lm.tokenizer.beyond(lm.config.vocab_size):
        raise ArgumentError(
            f"'{folder}': {more}, so that texts cannot be read; take the tokenizer that the model was "
            f"trained with"
        )
    if reads:
        if task_data.kind not in ("classification", "pair", "regression", "tagging"):
            raise ArgumentError(
                f"adapt.layers and adapt.pooling are for classes, numbers and tags, not for {task_data.kind}"
            )
        pooling = None if task_data.kind == "tagging" else adapt["pooling"] or "mean"
        layers = "last" if adapt["layers"] is None else adapt["layers"]
        lm.model = cast("Model", Features(lm.config, lm.model, layers, pooling, **options_of(adapt, lm)))
    extra = task_settings.remember(task_data.settings, lm.config)
    if task_data.names:
        numbers = {name: i for i, name in enumerate(task_data.names)}
        extra |= {"id2label": {str(i): name for name, i in numbers.items()}, "label2id": numbers}
    elif task_data.kind == "regression":  # an earlier task's classes
        extra = {key: value for key, value in extra.items() if key not in ("id2label", "label2id")}
    set_config(lm.model, lm.config.replace(extra=extra))
    return lm


def options_of(adapt: Mapping[str, Any], lm: language_model.LanguageModel) -> dict[str, Any]:
    """Of Features: the word vectors, and what reads them and the layers."""
    table = None
    if adapt["vectors"] is not None:
        if lm.tokenizer is None or not lm.tokenizer.spells:
            raise ArgumentError(
                f"adapt.vectors are of words, and {lm.config.model_type} reads pieces of them: it is for "
                f"elmo and cove"
            )
        table = word_table(adapt["vectors"])
    keys = ("dropout", "encoder", "features", "biattentive", "mix_penalty")
    return {"table": table, **{key: adapt[key] for key in keys}}


def reads_layers(adapt: Mapping[str, Any]) -> bool:
    """Whether the task reads the layers of a body and not a head of the family."""
    return adapt["layers"] is not None or adapt["pooling"] is not None


def needed_head(config: Config, task_data: TaskData) -> str:
    """The head of the family that the task needs; ArgumentError where it cannot learn from what is given."""
    kind = "seq2seq" if task_data.as_text else task_data.kind
    head = "base" if reads_layers(task_data.settings["adapt"]) else head_for(kind, config)
    cross_view.check(config, head, task_data)
    return head


def tasks_of(config: Config, head: str, task_data: TaskData) -> dict[str, Any]:
    """Keys of the config of a model that may have several tasks: their names, and classes."""
    if not cross_view.learns(config, head):
        return {}
    others = [
        {"name": n, "task": d.kind, "labels": d.names, "scheme": d.settings["task"]["scheme"]}
        for n, d in task_data.further.items()
    ]
    return {"task_name": task_data.settings["task"]["name"], "tasks": others}


def needs_new_head(config: Config, head: str, task_data: TaskData, changes: Mapping[str, Any]) -> bool:
    """Whether the outputs of the directory's head are not those of the task:
    other classes, or classes and not numbers.
    """
    if [*getattr(config, "tasks", ())] != changes.get("tasks", []):
        return True
    if head != models.head_of(config) or head not in ("sequence-classification", "token-classification"):
        return False
    if task_data.kind == "regression":
        return config.num_labels != 1
    known = config.extra.get("id2label") or {}
    return [known.get(str(i)) for i in range(config.num_labels)] != task_data.names


def fresh_names(lm: language_model.LanguageModel) -> set[str]:
    """Our names of the parameters that the directory had no weights for."""
    model = adapting.published(lm.model)
    drawn = set() if lm.report is None else set(lm.report.fresh)
    found = {s.name for s in names.slots(models.family(model.config), model) if drawn & {*s.stored.parts}}
    return {f"body.{name}" for name in found} if model is not lm.model else found


def head_for(kind: str, config: Config) -> str:
    if kind == "lm":
        return language_modelling.head_of(config)
    heads = models.family(config).HEADS
    wanted = HEADS.get(kind, "sequence-classification")
    if kind == "multiple-choice" and wanted not in heads:
        wanted = "double-heads"
    if wanted not in heads:
        raise ArgumentError(f"{config.model_type} has no head for {kind}: it has {', '.join(heads)}")
    return wanted


def changes_for(task_data: TaskData) -> dict[str, Any]:
    """What the task asks of the config."""
    problems = {
        "classification": "single_label_classification",
        "pair": "single_label_classification",
        "regression": "regression",
    }
    if task_data.kind == "tagging" or (task_data.as_text and task_data.names):
        return {"num_labels": task_data.labels_needed}
    if task_data.kind not in problems or task_data.as_text:
        return {}
    return {"num_labels": task_data.labels_needed, "problem_type": problems[task_data.kind]}


def set_config(model: Model, config: Config) -> None:
    """A config for the model and all of its parts that had the old one."""
    old = model.config
    for module in model.modules():
        if getattr(module, "config", None) is old:
            vars(module)["config"] = config
