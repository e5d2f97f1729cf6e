"""plmcore info: what a model directory or a file holds."""

from __future__ import annotations

import argparse
import math
import pathlib
import sys
from collections import Counter
from collections.abc import Iterable, Mapping

from plmcore import Tensor, models
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
        help="describe a model directory or a file",
        description="Prints the family, head, number of parameters, dtype, memory and tokenizer of a model "
        "directory, or the format of a file and what it holds. The weights are not read.",
        epilog="examples:\n  plmcore info bert-base-uncased\n  plmcore info bert.plm",
        formatter_class=Help,
    )
    command.add_argument(
        "folder",
        type=pathlib.Path,
        metavar="DIR|FILE",
        help="a directory with config.json and safetensors files, or a file of weights or programs",
    )


def run(args: argparse.Namespace) -> int:
    try:
        print(describe_file(args.folder) if args.folder.is_file() else describe(args.folder))
    except (ValueError, OSError) as e:
        print(f"plmcore info: {e}", file=sys.stderr)
        return 1
    return 0


def describe(folder: pathlib.Path) -> str:
    """Family, head, parameters, dtype, memory, one to a line. Weights are mapped, not read."""
    config = directory.read_config(folder)
    head = models.head_of(config)
    tensors, _ = registry.read(folder)
    lines = {
        "family": config.model_type,
        "head": f"{head} ({models.architecture_of(config, head)})",
        "parameters": f"{models.count_parameters(config, head):,}",
        **of_tensors(tensors.values()),
        "tokenizer": next((n for n in TOKENIZERS if (folder / n).exists()), "none"),
    }
    return in_lines(lines)


def describe_file(path: pathlib.Path) -> str:
    """The format, and what the file says of itself or how many tensors it holds."""
    name = registry.of_file(path)
    itself = registry.get(name).describe
    if itself is not None:
        return in_lines({"format": name, **itself(path)})
    tensors, _ = registry.read_as(name, path)
    return in_lines({"format": name, "tensors": f"{len(tensors):,}", **of_tensors(tensors.values())})


def of_tensors(tensors: Iterable[Tensor]) -> dict[str, str]:
    """Their dtypes and memory."""
    values: Counter[str] = Counter()
    size = 0
    for t in tensors:
        size += t.nbytes
        if "float" in t.dtype or t.dtype == "int8":  # others are buffers
            values[t.dtype] += math.prod(map(int, t.shape))
    dtypes = (f"{dtype} ({n:,} values)" if len(values) > 1 else dtype for dtype, n in values.items())
    return {"dtype": ", ".join(dtypes), "memory": f"{size / 1e6:,.1f} MB of weights"}


def in_lines(values: Mapping[str, str]) -> str:
    return "\n".join(f"{name:<11} {value}" for name, value in values.items())
