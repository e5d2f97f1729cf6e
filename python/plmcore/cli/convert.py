"""plmcore convert: weights of another format (pytorch_model.bin) as safetensors, without torch."""

from __future__ import annotations

import argparse
import pathlib
import sys

from plmcore import FormatError
from plmcore.cli.arguments import Help, positive
from plmcore.files.whole import copy_inside
from plmcore.formats import registry, shards

# configuration, vocabularies, templates: what makes a model directory
BESIDE = (".json", ".txt", ".model", ".jinja", ".md")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "convert",
        help="turn pytorch_model.bin into safetensors",
        description="Converts files of torch.save, alone or in a model directory, to safetensors. PyTorch "
        "is not needed. No code in a file is run. A file that holds anything but tensors is "
        "refused.",
        epilog="examples:\n  plmcore convert bert-dir bert-new\n  plmcore convert pytorch_model.bin "
        "model.safetensors",
        formatter_class=Help,
    )
    command.add_argument(
        "source", type=pathlib.Path, metavar="DIR|FILE", help="a model directory, or a file of torch.save"
    )
    command.add_argument(
        "out",
        type=pathlib.Path,
        metavar="OUT",
        help="the directory to write, with configuration and tokenizer files; or a .safetensors file",
    )
    command.add_argument(
        "--max-shard-mb",
        type=positive,
        metavar="N",
        help="split weights larger than N megabytes (10^6 bytes) into shards with an index",
    )


def run(args: argparse.Namespace) -> int:
    try:
        written = convert(args.source, args.out, args.max_shard_mb and args.max_shard_mb * 10**6)
    except (FormatError, OSError) as e:
        print(f"plmcore convert: {e}", file=sys.stderr)
        return 1
    print("\n".join(map(str, written)))
    return 0


def convert(
    source: pathlib.Path, out: pathlib.Path, max_shard_bytes: int | None = None
) -> list[pathlib.Path]:
    """Writes the weights of a file or a model directory; returns what was written.

    `out` is a file where it is named so (.safetensors), else a directory.
    A directory also gets the configuration and tokenizer files of the source. The metadata says "format":
    "pt", which transformers asks for.
    """
    tensors, _ = registry.read(source, loads=False)
    as_file = registry.is_file_name(out)
    if not as_file:
        out.mkdir(parents=True, exist_ok=True)
    written = registry.write(out, tensors, {"format": "pt"}, max_shard_bytes)
    if source.is_dir() and not as_file and not out.samefile(source):
        written += copy_beside(source, out)
    return written


def copy_beside(source: pathlib.Path, out: pathlib.Path) -> list[pathlib.Path]:
    """Copies what is no weights: small files of the directory,
    and the configurations in its numbered folders (1_Pooling).
    """
    copied = []
    for file in sorted([*source.iterdir(), *source.glob("[0-9]*_*/config.json")]):
        if file.suffix in BESIDE and file.is_file() and not file.name.endswith(shards.INDEX):
            copied.append(copy_inside(source, str(file.relative_to(source)), out))
    return copied
