"""The command `plmcore`, also `python -m plmcore`."""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Sequence

import plmcore
from plmcore.cli import corpus, show, tokenize
from plmcore.cli import evaluate, tokenize
from plmcore.cli import generate
from plmcore.cli import corpus, demo, pretrain, show, tokenize

EXAMPLES = """\
examples:
  python -m plmcore demo --out run                train a tokenizer and a small GPT-2 for two minutes and read what it writes
  python -m plmcore pretrain gpt2 --size tiny --text book.txt --out run
                                                  train a tokenizer and a small GPT-2 on a text
  python -m plmcore convert model-dir new-dir     pytorch_model.bin to model.safetensors, without PyTorch and without running pickled code
  python -m plmcore generate model-dir --prompt "Once upon" --beams 4
                                                  write the text that follows a prompt
  python -m plmcore info model-dir                family, head, parameters and memory of a model directory
  python -m plmcore show masked-lm --text "..."   what an objective makes of a text, and what is to be predicted
  python -m plmcore evaluate model-dir text.txt   perplexity of a text per token, word, byte and character
  python -m plmcore tokenize train texts/ --out my-tokenizer
                                                  train a tokenizer on a folder of text
  python -m plmcore corpus texts/ --tokenizer my-tokenizer --out my-corpus
                                                  the same text as ids, ready for training
  cmake -B build -Dplmcore_DIR=$(python -m plmcore --cmake-dir)
                                                  build a C++ program against the installed library
"""


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser(
        prog="plmcore",
        description=plmcore.__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    main.add_argument("--version", action="version", version=f"plmcore {plmcore.__version__}")
    main.add_argument("--cmake-dir", action="store_true", help="print the folder of plmcore-config.cmake and exit")
    commands = main.add_subparsers(dest="command", metavar="COMMAND")

    demo.add(commands)
    pretrain.add(commands)

    convert = commands.add_parser(
        "convert",
        help="turn pytorch_model.bin into safetensors",
        description="Reads what torch.save wrote (a file, or a model directory with one or several) and writes safetensors. PyTorch is not needed, "
        "and nothing in the file is run: one that holds more than tensors is refused.",
        epilog="examples:\n  python -m plmcore convert bert-dir bert-new\n  python -m plmcore convert pytorch_model.bin model.safetensors",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    convert.add_argument(
        "source", type=pathlib.Path, metavar="DIR|FILE", help="a model directory or a file of torch.save"
    )
    convert.add_argument(
        "out",
        type=pathlib.Path,
        metavar="OUT",
        help="a directory, which also gets configuration and tokenizer files, or a .safetensors file",
    )
    convert.add_argument(
        "--max-shard-mb",
        type=positive,
        metavar="N",
        help="split weights larger than N megabytes (10^6 bytes) into shards with an index",
    )

    generate.add(commands)

    info = commands.add_parser(
        "info",
        help="say what a model directory holds",
        description="Family, head, number of parameters, dtype and memory of a model directory. The weights are not read.",
        epilog="example:\n  python -m plmcore info bert-base-uncased",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    info.add_argument(
        "folder", type=pathlib.Path, metavar="DIR", help="a directory with config.json and safetensors files"
    )
    show.add_parser(commands)
    evaluate.add_parser(commands)
    tokenize.add_parser(commands)
    corpus.add_parser(commands)
    return main


def positive(text: str) -> int:
    n = int(text)
    if n < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {n}")
    return n


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser()
    args = arguments.parse_args(argv)
    if args.cmake_dir:
        folder = pathlib.Path(plmcore.__file__).parent / "cmake"
        if not (folder / "plmcore-config.cmake").exists():
            print(
                f"plmcore: {folder} has no plmcore-config.cmake; this copy runs from a checkout, install it with `pip install .`",
                file=sys.stderr,
            )
            return 1
        print(folder)
        return 0
    if args.command == "demo":
        return demo.run(args)
    if args.command == "pretrain":
        return pretrain.run(args)
    if args.command == "convert":
        from plmcore.cli import convert

        try:
            written = convert.run(args.source, args.out, args.max_shard_mb and args.max_shard_mb * 10**6)
        except (plmcore.FormatError, OSError) as e:
            print(f"plmcore convert: {e}", file=sys.stderr)
            return 1
        print("\n".join(map(str, written)))
        return 0
    if args.command == "generate":
        return generate.run(args)
    if args.command == "info":
        from plmcore.cli import info

        try:
            print(info.describe(args.folder))
        except (ValueError, OSError) as e:
            print(f"plmcore info: {e}", file=sys.stderr)
            return 1
        return 0
    if args.command == "show":
        return show.run(args)
    if args.command == "evaluate":
        return evaluate.run(args)
    if args.command == "tokenize":
        return tokenize.run(args)
    if args.command == "corpus":
        return corpus.run(args)
    arguments.print_help()
    return 2
