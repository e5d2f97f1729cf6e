"""The command `plmcore`: one module per subcommand, with add_parser(commands) and run(args)."""

from __future__ import annotations

import argparse
import io
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import plmcore
from plmcore import _core
from plmcore.cli import (
    annotate,
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
    new,
    pretrain,
    quantize,
    show,
    tokenize,
)
from plmcore.cli.arguments import ERRORS, Help
from plmcore.runtime import startup

COMMANDS = {
    "demo": demo,
    "pretrain": pretrain,
    "new": new,
    "finetune": finetune,
    "classify": classify,
    "annotate": annotate,
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
  plmcore demo --out run                             train a small GPT-2 in two minutes
  plmcore pretrain gpt2 --text book.txt --out run    train a tokenizer and a model on text
  plmcore generate run/final --prompt "Once upon"    generate text
  plmcore evaluate run/final held-out.txt            perplexity of a text
  plmcore finetune bert-base-uncased --task classification --train train.tsv --out classifier
                                                     train a classifier on a table of texts and labels
  plmcore classify classifier/final "a lovely film"  classify a text
  plmcore fill-mask bert-base-uncased "Paris is the [MASK] of France."
                                                     predict a masked token
  plmcore embed all-MiniLM-L6-v2 lines.txt --out vectors.npy
                                                     write a vector for each line
  plmcore quantize gpt2 --to int8 --out gpt2-int8    write a model with int8 weights
  plmcore export gpt2 gpt2.plm                       write a file that a C++ program runs without Python

`plmcore COMMAND --help` describes a command, with examples.
"""


def parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser(
        prog="plmcore",
        description=plmcore.__doc__,
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    main.add_argument(
        "--version",
        action="version",
        version=version(),
        help="print version, instruction set, BLAS and threads and exit",
    )
    main.add_argument(
        "--cmake-dir", action="store_true", help="print the folder of the CMake package and exit"
    )
    commands = main.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS.values():
        command.add_parser(commands)
    return main


def version() -> str:
    """plmcore 0.1.0 (kernels x86-64-v4, BLAS mkl, 2 threads): what a report of a fault should begin with."""
    isa = _core.isa()
    kernels = isa if isa == "base" else f"x86-64-{isa}"
    threads = "1 thread" if plmcore.num_threads() == 1 else f"{plmcore.num_threads()} threads"
    return f"plmcore {plmcore.__version__} (kernels {kernels}, BLAS {_core.blas()}, {threads})"


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status of a command: 0, 1 after an error, 2 for wrong arguments, 130 after Ctrl-C.

    What is wrong is said in one line: our errors, those of files, and what a command lists as ANSWERED.
    """
    write_any_letter()
    if not environment_is_right():
        return 2
    arguments = parser()
    args, unknown = arguments.parse_known_args(argv)
    if unknown:
        refuse(arguments, args.command, unknown)
    if args.cmake_dir:
        return print_cmake_folder()
    if args.command is None:
        arguments.print_help()
        return 2
    command = COMMANDS[args.command]
    try:
        startup.work_begins()
        return command.run(args)
    except KeyboardInterrupt:
        startup.work_ended()
        print("\nstopped", file=sys.stderr)
        return startup.STOPPED
    except (*ERRORS, *getattr(command, "ANSWERED", ()), OSError, ImportError) as e:
        print(f"plmcore {args.command}: {e}", file=sys.stderr)
        return 1
    finally:
        startup.work_ended()


def write_any_letter() -> None:
    """In a locale that knows ASCII only, what goes to a file or a pipe is UTF-8, and a terminal shows escapes
    for other letters.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            if stream.isatty():
                stream.reconfigure(errors="backslashreplace")
            else:
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def refuse(arguments: argparse.ArgumentParser, command: str | None, unknown: list[str]) -> NoReturn:
    """Ends with what was not understood and, where an option was misspelt or is another program's,
    which one was meant.
    """
    from plmcore.train import hints

    commands: Any = next(action for action in arguments._actions if action.dest == "command")
    own: argparse.ArgumentParser = arguments if command is None else commands.choices[command]
    name = next((text.partition("=")[0] for text in unknown if text.startswith("--")), None)
    hint = (
        ""
        if name is None
        else hints.option(name, [o for action in own._actions for o in action.option_strings])
    )
    own.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")


def environment_is_right() -> bool:
    """Whether the variables that choose threads and instruction set can be read.

    What is wrong is said before any work, not in its middle.
    """
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
            f"plmcore: {folder} has no plmcore-config.cmake; this copy runs from a checkout, install "
            f"it with `pip install .`",
            file=sys.stderr,
        )
        return 1
    print(folder)
    return 0
