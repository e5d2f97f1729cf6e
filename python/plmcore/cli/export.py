"""plmcore export: a model directory as one file that C++ programs run."""

from __future__ import annotations

import argparse
import pathlib

from plmcore import _core, language_model
from plmcore.cli.arguments import Help
from plmcore.formats import program_file
from plmcore.program.export import export, load_program

ANSWERED = (ValueError,)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "export",
        help="write a model as one file that C++ runs without Python",
        description="Writes a model to one file: its entry points with their weights, and what it is "
        "(labels, special ids, pooling, generation defaults, tokenizer). plmcore::Model::load opens it in "
        "C++, plm.Program.load in Python. It runs at any batch size and length. docs/embedding.md shows how.",
        epilog="example:\n  plmcore export bert-base-uncased bert.plm",
        formatter_class=Help,
    )
    command.add_argument(
        "folder", type=pathlib.Path, metavar="DIR", help="a directory with config.json and safetensors files"
    )
    command.add_argument("out", type=pathlib.Path, metavar="FILE", help="the file to write")
    command.add_argument("--head", help="the head to export (default: the head that config.json names)")


def run(args: argparse.Namespace) -> int:
    export(language_model.load(args.folder, args.head), args.out)
    program = load_program(args.out)
    for kind, values in (("input", program.inputs), ("output", program.outputs)):
        for name, shape, dtype in values:
            print(f"{kind:<6}  {name:<20}  {dtype}[{', '.join(map(str, shape))}]")
    model = program_file.read(args.out)
    kind = model.card.tokenizer or "none"
    served = "" if _core.Text.serves(model) else " (C++ takes ids)"
    print(f"entry points: {', '.join(model.names)}; tokenizer: {kind}{served}")
    print(f"{args.out}: {args.out.stat().st_size / 1e6:,.1f} MB")
    return 0
