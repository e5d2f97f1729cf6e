"""plmcore convert: weights of another format (pytorch_model.bin), and checkpoints of the programs that
families were published with, as safetensors, without torch.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

from plmcore._core import ArgumentError
from plmcore.cli.arguments import ERRORS, Help, positive
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
        "refused, unless --family says whose checkpoint it is.",
        epilog="examples:\n  plmcore convert bert-dir bert-new\n  plmcore convert pytorch_model.bin "
        "model.safetensors\n  plmcore convert checkpoint_best.pt mass-dir --family mass --vocab dict.txt\n"
        "  plmcore convert mp_rank_00_model_states.pt glm-dir --family glm --set num_attention_heads=16\n"
        "  plmcore convert wt103-fwd.pth lm-dir --family awd-lstm --vocab itos.pkl\n"
        "  plmcore convert elmo-files elmo-dir --family elmo",
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
    command.add_argument(
        "--family",
        metavar="NAME",
        help="FILE is a checkpoint of the program that this family was published with (mass: fairseq's, "
        "glm: Megatron's, awd-lstm: fastai's, elmo: a folder with options.json and weights.hdf5)",
    )
    command.add_argument(
        "--vocab",
        type=pathlib.Path,
        metavar="FILE",
        help="the vocabulary that goes with the checkpoint: fairseq's dict.txt, fastai's pickled list",
    )
    command.add_argument(
        "--set",
        action="append",
        type=setting,
        default=[],
        metavar="KEY=VALUE",
        help="a key of config.json that the checkpoint does not tell; may be repeated",
    )


def setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, got {text!r}")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def run(args: argparse.Namespace) -> int:
    most = args.max_shard_mb and args.max_shard_mb * 10**6
    try:
        if args.family is None and (args.vocab or args.set):
            raise ArgumentError("--vocab and --set go with --family")
        written = (
            convert(args.source, args.out, most)
            if args.family is None
            else convert_checkpoint(args.source, args.out, args.family, args.vocab, dict(args.set), most)
        )
    except (*ERRORS, OSError) as e:
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


def convert_checkpoint(
    source: pathlib.Path, out: pathlib.Path, family: str, *options: Any
) -> list[pathlib.Path]:
    from plmcore.language_model import importing

    importing.convert_checkpoint(source, out, family, *options)
    return sorted(path for path in out.iterdir() if path.is_file())


def copy_beside(source: pathlib.Path, out: pathlib.Path) -> list[pathlib.Path]:
    """Copies what is no weights: small files of the directory,
    and the configurations in its numbered folders (1_Pooling).
    """
    copied = []
    for file in sorted([*source.iterdir(), *source.glob("[0-9]*_*/config.json")]):
        if file.suffix in BESIDE and file.is_file() and not file.name.endswith(shards.INDEX):
            copied.append(copy_inside(source, str(file.relative_to(source)), out))
    return copied
