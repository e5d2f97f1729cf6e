"""plmcore info: what a model directory holds."""

from __future__ import annotations

import argparse
import math
import pathlib
import sys
from collections import Counter

from plmcore import models
from plmcore.cli.arguments import Help
from plmcore.formats import registry
from plmcore.language_model import directory

TOKENIZERS = (
    "source.spm",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "info",
        help="describe a model directory",
        description="Prints the family, head, number of parameters, dtype, memory and tokenizer of a model "
        "directory. The weights are not read.",
        epilog="example:\n  plmcore info bert-base-uncased",
        formatter_class=Help,
    )
    command.add_argument(
        "folder", type=pathlib.Path, metavar="DIR", help="a directory with config.json and safetensors files"
    )


def run(args: argparse.Namespace) -> int:
    try:
        print(describe(args.folder))
    except (ValueError, OSError) as e:
        print(f"plmcore info: {e}", file=sys.stderr)
        return 1
    return 0


def describe(folder: pathlib.Path) -> str:
    """Family, head, parameters, dtype, memory, one to a line. Weights are mapped, not read."""
    config = directory.read_config(folder)
    head = models.head_of(config)
    tensors, _ = registry.read(folder)
    values: Counter[str] = Counter()
    for t in tensors.values():
        if "float" in t.dtype or t.dtype == "int8":  # others are buffers
            values[t.dtype] += math.prod(map(int, t.shape))
    lines = {
        "family": config.model_type,
        "head": f"{head} ({models.architecture_of(config, head)})",
        "parameters": f"{models.count_parameters(config, head):,}",
        "dtype": ", ".join(
            f"{dtype} ({n:,} values)" if len(values) > 1 else dtype for dtype, n in values.items()
        ),
        "memory": f"{sum(t.nbytes for t in tensors.values()) / 1e6:,.1f} MB of weights",
        "tokenizer": next((n for n in TOKENIZERS if (folder / n).exists()), "none"),
    }
    return "\n".join(f"{name:<11} {value}" for name, value in lines.items())
