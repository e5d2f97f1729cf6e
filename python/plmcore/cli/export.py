"""plmcore export: a model directory as one file that C++ programs run."""

from __future__ import annotations

import argparse
import pathlib

from plmcore import language_model
from plmcore.cli.arguments import Help
from plmcore.program.export import export, load_programs

ANSWERED = (ValueError,)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "export",
        help="write a model as one file that C++ runs without Python",
        description="Writes the forward pass of a model and its weights to one file. plmcore::Model::load "
        "opens it in C++, plm.load_program in Python. The program runs at any batch size and "
        "length. Its inputs are ids, its outputs logits or states. The tokenizer is not part "
        "of the file.",
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
    programs = load_programs(args.out)
    program = programs.get("main", programs.get("start"))  # a decoder that runs by steps has no main
    assert program is not None
    for kind, values in (("input", program.inputs), ("output", program.outputs)):
        for name, shape, dtype in values:
            print(f"{kind:<6}  {name:<20}  {dtype}[{', '.join(map(str, shape))}]")
    print(f"{args.out}: {args.out.stat().st_size / 1e6:,.1f} MB")
    return 0
