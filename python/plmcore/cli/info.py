from __future__ import annotations

import math
import pathlib
from collections import Counter

from plmcore import directory, models, safetensors

TOKENIZERS = (
    "source.spm",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
)


def describe(folder: pathlib.Path) -> str:
    """Family, head, parameters, dtype, memory, one to a line. Weights are mapped, not read."""
    config = directory.read_config(folder)
    head = models.head_of(config)
    tensors, _ = safetensors.read(folder)
    values = Counter()
    for t in tensors.values():
        if "float" in t.dtype:  # others are buffers
            values[t.dtype] += math.prod(t.shape)
    lines = {
        "family": config.model_type,
        "head": f"{head} ({models.architecture_of(config, head)})",
        "parameters": f"{models.count_parameters(config, head):,}",
        "dtype": ", ".join(f"{dtype} ({n:,} values)" if len(values) > 1 else dtype for dtype, n in values.items()),
        "memory": f"{sum(t.nbytes for t in tensors.values()) / 1e6:,.1f} MB of weights",
        "tokenizer": next((n for n in TOKENIZERS if (folder / n).exists()), "none"),
    }
    return "\n".join(f"{name:<11} {value}" for name, value in lines.items())
