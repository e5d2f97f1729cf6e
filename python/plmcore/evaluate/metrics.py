"""Metrics by name, and which ones a task is judged by.

A metric is a function (predictions, references) -> a number, or several by name. Unless its comment says
otherwise a number is a fraction, not a percentage.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from plmcore._core import ArgumentError
from plmcore.evaluate.needed import needed

# name -> module of this package, function, fixed arguments
METRICS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "accuracy": ("classification", "accuracy", {}),
    "f1": ("classification", "f1", {}),
    "f1_micro": ("classification", "f1", {"average": "micro"}),
    "f1_macro": ("classification", "f1", {"average": "macro"}),
    "matthews": ("classification", "matthews", {}),
    "senses": ("classification", "senses", {}),
    "reciprocal_rank": ("classification", "reciprocal_rank", {}),
    "pearson": ("correlation", "pearson", {}),
    "spearman": ("correlation", "spearman", {}),
    "token_accuracy": ("tagging", "token_accuracy", {}),
    "entities": ("tagging", "entities", {}),
    "chunks": ("tagging", "entities", {}),
    "roles": ("tagging", "roles", {}),
    "squad": ("answers", "squad", {}),
    "corpus_f1": ("answers", "corpus_f1", {}),
    "bleu": ("translation", "bleu", {}),  # 0 to 100
    "rouge": ("summaries", "rouge", {}),
    "cider": ("captions", "cider", {}),  # 0 to 10
    "coreference": ("coreference", "coreference", {}),
    "muc": ("coreference", "muc", {}),
    "b_cubed": ("coreference", "b_cubed", {}),
    "ceaf": ("coreference", "ceaf", {}),
    "wer": ("recognition", "wer", {}),  # lower is better
    "cer": ("recognition", "cer", {}),  # lower is better
}

# metric -> the library of the extra `eval` that computes it
LIBRARIES = {
    **dict.fromkeys(("f1", "f1_micro", "f1_macro", "matthews"), "sklearn.metrics"),
    "pearson": "scipy.stats",
    **dict.fromkeys(("coreference", "ceaf"), "scipy.optimize"),
    **dict.fromkeys(("entities", "chunks"), "seqeval.metrics.sequence_labeling"),
    "bleu": "sacrebleu.metrics",
}

# dataset or kind of task -> its metrics
TASKS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("race", "story_cloze", "swag", "cbt", "rte", "snli", "mnli", "qnli", "wnli", "scitail"),
        ("accuracy",),
    ),
    **dict.fromkeys(("sst2", "sst5", "imdb", "trec", "document_classification"), ("accuracy",)),
    **dict.fromkeys(("mrpc", "qqp"), ("accuracy", "f1")),
    "qa_matching": ("accuracy",),  # and reciprocal_rank of the scores
    "stsb": ("pearson", "spearman"),
    "similarity": ("pearson",),
    "cola": ("matthews",),
    "squad": ("squad",),
    **dict.fromkeys(("conll2003", "ontonotes", "fine_grained_ner"), ("entities",)),
    "conll2000": ("chunks",),
    "reuters": ("f1_micro", "f1_macro"),
    "pos": ("token_accuracy",),
    **dict.fromkeys(("conll2004", "conll2005"), ("roles",)),
    "wsd": ("senses",),
    "conll2012": ("coreference",),
    **dict.fromkeys(("wmt14", "wmt15", "iwslt15", "translation"), ("bleu",)),
    "summarisation": ("rouge",),
    "captioning": ("bleu", "cider"),
    "speech_recognition": ("wer",),
}


def metric(name: str) -> Callable[..., float | dict[str, Any]]:
    """Returns the metric of this name, a function of (predictions, references)."""
    if name not in METRICS:
        raise ArgumentError(f"there is no metric {name!r}; one of {', '.join(METRICS)}")
    module, function, fixed = METRICS[name]
    found = getattr(import_module(f"plmcore.evaluate.{module}"), function)
    return functools.partial(found, **fixed) if fixed else found


def check_installed(names: Sequence[str]) -> None:
    """ModuleNotFoundError if the library of a metric is not installed: for long work, before it begins."""
    for name in names:
        if name in LIBRARIES:
            needed(LIBRARIES[name], name)


def metrics_of(task: str) -> tuple[str, ...]:
    """Returns the names of a task's metrics."""
    if task not in TASKS:
        raise ArgumentError(f"there is no task {task!r}; one of {', '.join(sorted(TASKS))}")
    return TASKS[task]


def compute(
    names: str | Sequence[str], predictions: Sequence[Any], references: Sequence[Any]
) -> dict[str, Any]:
    """Computes several metrics. compute(["accuracy", "f1"], predictions, references) -> {"accuracy":
    0.9, "f1": 0.8}
    """
    scores: dict[str, Any] = {}
    for name in [names] if isinstance(names, str) else names:
        value = metric(name)(predictions, references)
        new = value if isinstance(value, dict) else {name: value}
        if twice := scores.keys() & new.keys():
            raise ArgumentError(
                f"{name} and another metric both have the score {sorted(twice)[0]!r}; compute them apart"
            )
        scores |= new
    return scores
