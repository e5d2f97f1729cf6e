"""The settings of a fine-tuning run: those usual for the family and the task, changed by a config.toml, by a
command and by single assignments.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

from plmcore import data, models
from plmcore._core import ArgumentError
from plmcore.evaluate import metrics
from plmcore.language_model import directory
from plmcore.models.config import Config
from plmcore.models.declaration import Finetuning
from plmcore.tasks.records import KINDS
from plmcore.train import extending, hints, making, settings
from plmcore.train.settings import SettingError, Settings
from plmcore.train.training import RESULTS

EXAMPLE = "plmcore finetune DIR --task classification --train FILE --out RUN"
# kinds of plmcore.data's tasks
OF_DECLARED = {"choice": "multiple-choice", "span": "qa", "translation": "seq2seq"}
METRICS = {
    "classification": ["accuracy"],
    "pair": ["accuracy"],
    "regression": ["pearson", "spearman"],
    "multiple-choice": ["accuracy"],
    "tagging": ["token_accuracy"],
    "qa": ["squad"],
    "seq2seq": ["bleu"],
    "lm": [],
}
LENGTHS = {
    "classification": 128,
    "pair": 128,
    "regression": 128,
    "multiple-choice": 128,
    "tagging": 128,
    "qa": 384,
    "seq2seq": 128,
    "lm": 512,
}
FILES = (
    "data.train",
    "data.dev",
    "data.test",
    "data.folder",
    "data.unlabelled",
)  # may be elsewhere when a run goes on
UNFREEZING = ("classification", "pair", "regression")
WIDE = 512  # narrower models have ten times the published rates
# What a model must be used with later as in its training: kept in config.json.
KEPT_IN, KEPT = "task_specific_params", "finetuning"
KEPT_SETTINGS = (
    "name",
    "as_text",
    "both_orders",
    "scheme",
    "stride",
    "question_length",
    "answer_length",
    "null_threshold",
    "unanswerable",
    "prefix",
    "target_length",
    "beams",
)


def kind_of(task: str) -> str:
    """The kind of a task: its name itself, or that of one that plmcore.data declares."""
    if task in KINDS:
        return task
    if task not in data.TASKS:
        near = hints.nearest(task, [*KINDS, *data.TASKS])
        raise ArgumentError(f"there is no task {task!r}{near}")
    declared = data.task(task)
    if declared.kind == "answer":
        raise ArgumentError(f"{task} is scored without training: plmcore evaluate --task {task}")
    return OF_DECLARED.get(declared.kind, declared.kind)


def defaults(task: str, folder: str | os.PathLike[str]) -> Settings:
    """All settings of a run with the model of a directory."""
    return usual(task, directory.read_config(folder), os.fspath(folder))


def usual(task: str, config: Config, model: str) -> Settings:
    """All settings for a model, each with its value; None where there is none."""
    kind = kind_of(task)
    family: Finetuning = models.family(config).FINETUNING
    rate = family.lr * (family.small_lr_times if config.width < WIDE else 1)
    length = config.lengths.get(kind) or min(LENGTHS[kind], config.longest or LENGTHS[kind])
    tables: Settings = {
        "run": {"task": task, "model": model, "seed": 0, "device": "cpu"},
        "data": {
            "train": None,
            "dev": None,
            "test": None,
            "folder": None,
            "unlabelled": None,
            "also": [],
            "columns": [],
            "labels": [],
            "held_out": 0.0,
            "length": length,
            "overlong": "cut",
            "errors": "strict",
            "batch": 12 if kind == "qa" else 32,
            "accumulate": 1,
            **family.data,
        },
        "task": {
            "name": task,
            "metrics": list(metrics.TASKS.get(task.replace("-", "_")) or METRICS[kind]),
            "label_smoothing": family.label_smoothing if kind == "seq2seq" else 0.0,
            "lm_weight": family.lm_weight if kind != "regression" else 0.0,
            "both_orders": False,
            "as_text": False,
            "scheme": "none",
            "stride": None,
            "question_length": None,
            "answer_length": 30,
            "n_best": 5,
            "null_threshold": 0.0,
            "unanswerable": False,
            "prefix": "",
            "target_length": None,
            "beams": 1,
            **family.task,
        },
        "adapt": {
            "layers": None,
            "pooling": None,
            "vectors": None,
            "features": "input",
            "encoder": family.encoder,
            "biattentive": False,
            "mix_penalty": 0.001,
            "dropout": family.dropout,
            "freeze": None,
            "unfreeze_every": family.unfreeze_every if kind in UNFREEZING else None,
            "vocab": None,
            "reinit": 0,
            "noise": 0.0,
            "lora_rank": 0,
            "lora_alpha": 16.0,
            "lora_targets": ["attn.qkv"],
        },
        "optim": {
            **making.optimizer_options(),
            "kind": "adamw",
            "lr": rate,
            "betas": [0.9, 0.999],
            "eps": 1e-8,
            "weight_decay": 0.01,
            "clip_norm": 1.0,
            "layer_decay": 1.0,
            **family.optim,
        },
        "schedule": {
            "kind": family.schedule,
            "warmup": None,
            "floor": 0.0,
            **dict.fromkeys(making.CURVE),
        },
        "train": {
            "epochs": family.epochs,
            "steps": None,
            "extended": [],
            "warmup_share": family.warmup_share,
            "most_warmup": family.most_warmup,
            "log_every": 10,
            "save_every": None,
            "keep": 2,
            "evaluate_every": None,
            "patience": None,
            "average": None,
            "trigger": 5,
            "result": "last",
            "nonfinite": "stop",
            "recompute": False,
            "activations": "float32",
            "tensorboard": False,
            **family.train,
        },
    }
    if kind == "lm":
        for section, table in family.text.items():
            tables[section] |= table
    return tables


def new(given: Settings, config: str | os.PathLike[str] | None, changes: Sequence[str]) -> Settings:
    """The usual ones, changed by the config, by what was given, and by single settings, in this order."""
    layers = settings.layers(given, config, changes)
    run = {k: v for layer in layers for k, v in layer.get("run", {}).items()}
    for key, what in (
        ("model", "a model directory"),
        ("task", f"a task, one of {', '.join(KINDS)} or a name of plmcore.data"),
    ):
        if not run.get(key):
            raise ArgumentError(f"finetune needs {what}: {EXAMPLE}")
        settings.fitted(f"run.{key}", run[key], "")
    known = defaults(run["task"], run["model"])
    making.own_options(known, layers)
    result = settings.merged(known, *layers, kinds=making.KINDS | making.option_kinds())
    fill_features(result, models.family(directory.read_config(run["model"])).FINETUNING, layers)
    reads = result["adapt"]["layers"] is not None or result["adapt"]["pooling"] is not None
    if reads and not any("lm_weight" in layer.get("task", {}) for layer in layers):
        result["task"]["lm_weight"] = 0.0  # a language model has no such head
    if result["adapt"]["lora_rank"] and not any("lr" in layer.get("optim", {}) for layer in layers):
        # updates begin at 0
        result["optim"]["lr"] = max(result["optim"]["lr"], min(10 * result["optim"]["lr"], 1e-3))
    table = result["data"]
    if not table["train"] and not table["folder"]:
        raise ArgumentError(f"finetune needs a file to learn from: {EXAMPLE}")
    if table["folder"] and run["task"] not in data.TASKS:
        raise ArgumentError(
            f"--data is the folder of a published task, and {run['task']!r} is none; give --train FILE"
        )
    for section, key, allowed in (
        ("data", "overlong", ("cut", "error")),
        ("data", "errors", ("strict", "replace")),
        ("task", "scheme", ("none", "bioes")),
        ("train", "result", RESULTS),
    ):
        if result[section][key] not in allowed:
            raise SettingError(
                f"{section}.{key} must be {' or '.join(allowed)}, got {result[section][key]!r}"
            )
    if not 0 <= result["train"]["warmup_share"] <= 1:
        raise SettingError(f"train.warmup_share must be from 0 to 1, got {result['train']['warmup_share']}")
    for name in result["task"]["metrics"]:
        metrics.metric(name)
    fill_lengths(result)
    return result


def fill_features(chosen: Settings, family: Finetuning, layers: Sequence[Settings]) -> None:
    """What a family of features is used with, where nothing else is said."""
    for key in ("layers", "freeze"):
        if not any(key in layer.get("adapt", {}) for layer in layers):
            chosen["adapt"][key] = getattr(family, key)


def check_installed(chosen: Settings) -> None:
    """What the scores need of the extras is missed before the run begins."""
    if any(chosen["data"][key] for key in ("dev", "test", "folder", "held_out")):
        metrics.check_installed(chosen["task"]["metrics"])


def fill_lengths(chosen: Settings) -> None:
    """Those of the task that follow from data.length, where none are given."""
    length, kind = chosen["data"]["length"], kind_of(chosen["run"]["task"])
    lengths = {
        "stride": min(128 if kind == "qa" else 16, length // 4),
        "question_length": min(64, length // 4),
        "target_length": length,
    }
    chosen["task"] |= {key: value for key, value in lengths.items() if chosen["task"][key] is None}


def remember(chosen: Settings, config: Config) -> dict[str, Any]:
    """`config.extra` with the task, its length and those of its settings that are not the usual ones, instead
    of an earlier task's.
    """
    task, length = chosen["run"]["task"], chosen["data"]["length"]
    plain = usual(task, config, "")
    plain["data"]["length"] = length
    fill_lengths(plain)
    changed = {k: chosen["task"][k] for k in KEPT_SETTINGS if chosen["task"][k] != plain["task"][k]}
    others = config.extra.get(KEPT_IN)
    kept = {**(others if isinstance(others, dict) else {}), KEPT: {"task": task, "length": length, **changed}}
    return {**config.extra, KEPT_IN: kept}


def remembered(config: Config) -> dict[str, Any]:
    """What `remember` has kept; nothing of a model from elsewhere."""
    kept = config.extra.get(KEPT_IN)
    found = kept.get(KEPT) if isinstance(kept, dict) else None
    return dict(found) if isinstance(found, dict) and isinstance(found.get("task"), str) else {}


def of_use(task: str, config: Config, given: Settings, changes: Sequence[str] = ()) -> Settings:
    """The settings with which a trained model is used: the usual ones, those of its training if it was for a
    task of this kind, and changes.
    """
    kept = remembered(config)
    if kept and kind_of(kept.pop("task")) != kind_of(task):
        kept = {}
    of_training = {"data": {"length": kept.pop("length")}, "task": kept} if "length" in kept else {}
    chosen = settings.merged(
        usual(task, config, ""), of_training, *settings.layers(given, None, changes), kinds=making.KINDS
    )
    fill_lengths(chosen)
    return chosen


def resumed(
    begun: pathlib.Path, given: Settings, config: str | os.PathLike[str] | None, changes: Sequence[str]
) -> Settings:
    """Those of the run, with what settings.resumed lets change; more steps or epochs make it longer."""

    def of_run(stored: Settings) -> Settings:
        return defaults(stored["run"]["task"], stored["run"]["model"])

    layers = settings.layers(given, config, changes)
    return extending.resumed(begun, ("task", "model"), of_run, layers, FILES, making.KINDS)
