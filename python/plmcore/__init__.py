"""plmcore trains and runs language models (word2vec, BERT, GPT-2, T5, ...) on a small native runtime."""

from plmcore.runtime import startup as _startup  # first: it answers Ctrl-C while the rest is imported

# isort: split

import sys as _sys
from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from plmcore._core import (
    ArgumentError,
    DeviceError,
    Dim,
    DTypeError,
    FormatError,
    GraphError,
    IndexRangeError,
    KindError,
    OutOfMemoryError,
    ShapeError,
    Tensor,
    TraceError,
    __version__,
    from_dlpack,
    from_numpy,
    grad_enabled,
    memory_stats,
    num_threads,
    ops,
    random_state,
    reset_peak_memory,
    set_memory_cap,
    set_num_threads,
    set_random_state,
    trim_memory,
)
from plmcore._core import manual_seed as seed
from plmcore.files import pages as _pages
from plmcore.program.export import export, load_program, load_programs
from plmcore.program.trace import Program, spec, trace
from plmcore.runtime.autograd import enable_grad, grad, no_grad, recompute, stop_gradient, stored_activations
from plmcore.runtime.generator import Generator
from plmcore.runtime.making import arange, full, ones, rand, randn, zeros

del _startup
_sys.modules["plmcore.making"] = _sys.modules["plmcore.runtime.making"]  # as old pickles of tensors call it

_pages.DRAWERS.update(attention="plmcore.viz.attention:write", search="plmcore.viz.beams:write")

if TYPE_CHECKING:  # what is imported on first use, as editors and type checkers see it
    from plmcore import (
        compress,
        criteria,
        cuda,
        data,
        losses,
        models,
        nn,
        objectives,
        optim,
        tasks,
        tokenizers,
        train,
        vectors,
    )
    from plmcore.compress.quantizing import quantize
    from plmcore.evaluate import Evaluate as _Evaluate
    from plmcore.formats import safetensors
    from plmcore.language_model import LanguageModel, from_config, load
    from plmcore.language_model.making import new
    from plmcore.tasks.finetuning import finetune
    from plmcore.tokenizers import load_tokenizer, train_tokenizer
    from plmcore.train.pretraining import pretrain
    from plmcore.vectors import load_vectors

    evaluate: _Evaluate  # a module that can be called

__all__ = [
    "ArgumentError",
    "DTypeError",
    "DeviceError",
    "Dim",
    "FormatError",
    "Generator",
    "GraphError",
    "IndexRangeError",
    "KindError",
    "LanguageModel",
    "OutOfMemoryError",
    "Program",
    "ShapeError",
    "Tensor",
    "TraceError",
    "__version__",
    "arange",
    "compress",
    "criteria",
    "cuda",
    "data",
    "enable_grad",
    "evaluate",
    "export",
    "finetune",
    "from_config",
    "from_dlpack",
    "from_numpy",
    "full",
    "grad",
    "grad_enabled",
    "load",
    "load_program",
    "load_programs",
    "load_tokenizer",
    "load_vectors",
    "losses",
    "memory_stats",
    "models",
    "new",
    "nn",
    "no_grad",
    "num_threads",
    "objectives",
    "ones",
    "ops",
    "optim",
    "pretrain",
    "quantize",
    "rand",
    "randn",
    "random_state",
    "recompute",
    "reset_peak_memory",
    "safetensors",
    "seed",
    "set_memory_cap",
    "set_num_threads",
    "set_random_state",
    "spec",
    "stop_gradient",
    "stored_activations",
    "tasks",
    "tokenizers",
    "trace",
    "train",
    "train_tokenizer",
    "trim_memory",
    "vectors",
    "zeros",
]

_HOMES = {  # of what is imported on first use and is no module of this package
    "LanguageModel": "language_model",
    "finetune": "tasks.finetuning",
    "from_config": "language_model",
    "load": "language_model",
    "load_tokenizer": "tokenizers",
    "load_vectors": "vectors",
    "new": "language_model.making",
    "pretrain": "train.pretraining",
    "quantize": "compress.quantizing",
    "safetensors": "formats",
    "train_tokenizer": "tokenizers",
}

if not TYPE_CHECKING:  # a checker would take every name for one of these

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            value = globals()[name] = getattr(_import_module(f"plmcore.{_HOMES[name]}"), name)
            return value
        if name in __all__:  # found in globals() from now on
            return _import_module(f"plmcore.{name}")
        raise AttributeError(f"module 'plmcore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
