"""Evaluation: metrics by name, perplexity, choices, contamination. The module is also the function plm.evaluate(model, files, task)."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_ON_FIRST_USE = {
    "Perplexity": "likelihood",
    "choose": "choices",
    "compute": "metrics",
    "contamination": "ngrams",
    "continuations": "choices",
    "decascore": "benchmarks",
    "few_shot": "prompting",
    "glue": "benchmarks",
    "glue_table": "benchmarks",
    "last_words": "choices",
    "metric": "metrics",
    "metrics_of": "metrics",
    "perplexity": "likelihood",
}

__all__ = list(_ON_FIRST_USE)


def __getattr__(name: str) -> Any:
    if name in _ON_FIRST_USE:
        value = globals()[name] = getattr(import_module(f"plmcore.evaluate.{_ON_FIRST_USE[name]}"), name)
        return value
    raise AttributeError(f"module 'plmcore.evaluate' has no attribute {name!r}")


class _Evaluate(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> dict[str, Any]:
        return import_module("plmcore.evaluate.running").evaluate(*args, **options)


sys.modules[__name__].__class__ = _Evaluate
