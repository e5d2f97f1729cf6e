"""Evaluation: metrics by name, perplexity, choices, contamination.

The module is also the function plm.evaluate(model, files, task).
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plmcore.evaluate import benchmarks, choices, likelihood, metrics, ngrams, prompting, running
    from plmcore.evaluate.benchmarks import decascore, glue, glue_table
    from plmcore.evaluate.choices import choose, continuations, last_words
    from plmcore.evaluate.likelihood import Perplexity, perplexity
    from plmcore.evaluate.metrics import compute, metric, metrics_of
    from plmcore.evaluate.ngrams import contamination
    from plmcore.evaluate.prompting import few_shot

__all__ = [
    "Perplexity",
    "choose",
    "compute",
    "contamination",
    "continuations",
    "decascore",
    "few_shot",
    "glue",
    "glue_table",
    "last_words",
    "metric",
    "metrics_of",
    "perplexity",
]

_HOMES = {
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

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _HOMES:
            value = globals()[name] = getattr(import_module(f"plmcore.evaluate.{_HOMES[name]}"), name)
            return value
        raise AttributeError(f"module 'plmcore.evaluate' has no attribute {name!r}")


if TYPE_CHECKING:
    _Module = object  # to a checker, ModuleType has every name
else:
    _Module = ModuleType


class Evaluate(_Module):
    """This module's class, so that plm.evaluate(...) can be called."""

    if TYPE_CHECKING:
        __call__ = staticmethod(running.evaluate)
        Perplexity = likelihood.Perplexity
        choose = staticmethod(choices.choose)
        compute = staticmethod(metrics.compute)
        contamination = staticmethod(ngrams.contamination)
        continuations = staticmethod(choices.continuations)
        decascore = staticmethod(benchmarks.decascore)
        few_shot = staticmethod(prompting.few_shot)
        glue = staticmethod(benchmarks.glue)
        glue_table = staticmethod(benchmarks.glue_table)
        last_words = staticmethod(choices.last_words)
        metric = staticmethod(metrics.metric)
        metrics_of = staticmethod(metrics.metrics_of)
        perplexity = staticmethod(likelihood.perplexity)
    else:

        def __call__(self, *args: Any, **options: Any) -> dict[str, Any]:
            return import_module("plmcore.evaluate.running").evaluate(*args, **options)


if not TYPE_CHECKING:
    sys.modules[__name__].__class__ = Evaluate
