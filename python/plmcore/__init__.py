"""plmcore: pre-trained language models from word2vec to T5 and GLM on a small native runtime."""

from importlib import import_module as _import_module

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
from plmcore.autograd import enable_grad, grad, no_grad, recompute, stop_gradient, stored_activations
from plmcore.export import export, load_program, load_programs
from plmcore.making import arange, full, ones, rand, randn, zeros
from plmcore.program import Program, spec, trace

_ON_FIRST_USE = (
    "compress",
    "cuda",
    "data",
    "evaluate",
    "losses",
    "models",
    "nn",
    "objectives",
    "optim",
    "safetensors",
    "tasks",
    "tokenizers",
    "train",
)
_FUNCTIONS_ON_FIRST_USE = {
    "LanguageModel": "language_model",
    "finetune": "tasks.finetuning",
    "from_config": "language_model",
    "load": "language_model",
    "load_tokenizer": "tokenizers",
    "pretrain": "train.pretraining",
    "quantize": "compress.quantizing",
    "train_tokenizer": "tokenizers",
}

__all__ = [
    "ArgumentError",
    "DTypeError",
    "DeviceError",
    "Dim",
    "FormatError",
    "GraphError",
    "IndexRangeError",
    "KindError",
    "OutOfMemoryError",
    "Program",
    "ShapeError",
    "Tensor",
    "TraceError",
    "__version__",
    "arange",
    "enable_grad",
    "export",
    "from_dlpack",
    "from_numpy",
    "full",
    "grad",
    "grad_enabled",
    "load_program",
    "load_programs",
    "memory_stats",
    "no_grad",
    "num_threads",
    "ones",
    "ops",
    "rand",
    "randn",
    "random_state",
    "recompute",
    "reset_peak_memory",
    "seed",
    "set_memory_cap",
    "set_num_threads",
    "set_random_state",
    "spec",
    "stop_gradient",
    "stored_activations",
    "trace",
    "trim_memory",
    "zeros",
    *_ON_FIRST_USE,
    *_FUNCTIONS_ON_FIRST_USE,
]


def __getattr__(name: str):
    if name in _ON_FIRST_USE:  # found in globals() from now on
        return _import_module(f"plmcore.{name}")
    if name in _FUNCTIONS_ON_FIRST_USE:
        value = globals()[name] = getattr(_import_module(f"plmcore.{_FUNCTIONS_ON_FIRST_USE[name]}"), name)
        return value
    raise AttributeError(f"module 'plmcore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
