"""The command `plmcore`, also `python -m plmcore`: one module per subcommand, with add_parser(commands) and run(args)."""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Sequence

import plmcore
from plmcore import _core
from plmcore.cli import (
    classify,
    convert,
    corpus,
    demo,
    embed,
    evaluate,
    export,
    fill_mask,
    finetune,
    generate,
    info,
    pretrain,
    quantize,
    show,
    tokenize,
)

COMMANDS = {
    "demo": demo,
    "pretrain": pretrain,
    "finetune": finetune,
    "classify": classify,
    "fill-mask": fill_mask,
    "generate": generate,
    "evaluate": evaluate,
    "embed": embed,
    "quantize": quantize,
    "tokenize": tokenize,
    "corpus": corpus,
    "show": show,
    "info": info,
    "convert": convert,
    "export": export,
}
EXAMPLES = """\
examples:
  python -m plmcore demo --out run                train a tokenizer and a small GPT-2 for two minutes and read what it writes
  python -m plmcore pretrain gpt2 --size tiny --text book.txt --out run
                                                  train a tokenizer and a small GPT-2 on a text
  python -m plmcore finetune model-dir --task classification --train train.tsv --dev dev.tsv --out run
                                                  train a classifier on a table of texts and labels
  python -m plmcore classify run/final "a lovely film"
                                                  the class of a text, by a fine-tuned model
  python -m plmcore fill-mask bert-dir "Paris is the [MASK] of France."
                                                  the likeliest tokens for a mask
  python -m plmcore convert model-dir new-dir     pytorch_model.bin to model.safetensors, without PyTorch and without running pickled code
  python -m plmcore generate model-dir --prompt "Once upon" --beams 4
                                                  write the text that follows a prompt
  python -m plmcore info model-dir                family, head, parameters and memory of a model directory
  python -m plmcore show masked-lm --text "..."   what an objective makes of a text, and what is to be predicted
  python -m plmcore evaluate model-dir text.txt   perplexity of a text per token, word, byte and character
  python -m plmcore embed model-dir lines.txt --out vectors.npy
                                                  a vector for each line
  python -m plmcore quantize model-dir --to int8 --out small-dir
                                                  the same model with int8 weights, and what that saves and costs
  python -m plmcore export model-dir model.plm    one file that a C++ program runs without Python
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
    for command in COMMANDS.values():
        command.add_parser(commands)
    return main


def main(argv: Sequence[str] | None = None) -> int:
    if not environment_is_right():
        return 2
    arguments = parser()
    args = arguments.parse_args(argv)
    if args.cmake_dir:
        return print_cmake_folder()
    if args.command is None:
        arguments.print_help()
        return 2
    return COMMANDS[args.command].run(args)


def environment_is_right() -> bool:
    """Whether the variables that choose threads and instruction set can be read. What is wrong is said before any work, not in its middle."""
    try:
        for read in (plmcore.num_threads, _core.isa, _core.multiplies_bytes):
            read()
    except (plmcore.ArgumentError, plmcore.DeviceError) as e:
        print(f"plmcore: {e}", file=sys.stderr)
        return False
    return True


def print_cmake_folder() -> int:
    folder = pathlib.Path(plmcore.__file__).parent / "cmake"
    if not (folder / "plmcore-config.cmake").exists():
        print(
            f"plmcore: {folder} has no plmcore-config.cmake; this copy runs from a checkout, install it with `pip install .`",
            file=sys.stderr,
        )
        return 1
    print(folder)
    return 0
