"""plmcore quantize: a model directory with weights of fewer bits, and what that costs."""

from __future__ import annotations

import argparse
import pathlib
import sys
import textwrap
from typing import TYPE_CHECKING

from plmcore.cli.arguments import Help, add_errors

if TYPE_CHECKING:
    from plmcore.compress import Comparison

WEIGHTS = ("int8", "bfloat16")
CHARACTERS = {"masked": 1_000}  # of the default text: a masked model reads it once for each token
MOST_CHARACTERS = 20_000
LINE = 120
EXAMPLES = """\
examples:
  plmcore quantize gpt2-dir --to int8 --out gpt2-int8 --text held-out.txt
  plmcore quantize marian-dir --out marian-int8 --text test.de --source test.en
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "quantize",
        help="write a model directory with int8 or bfloat16 weights",
        description="Writes a model with int8 or bfloat16 weights to a new directory. The new directory "
        "loads like any other. Prints a comparison of both models: size, speed, "
        "perplexity on a text, and how often they choose the same token.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    add = command.add_argument
    add("folder", type=pathlib.Path, metavar="DIR", help="a model directory")
    add("--to", choices=WEIGHTS, default=WEIGHTS[0], help="the type of the weights (default: %(default)s)")
    add("--out", type=pathlib.Path, required=True, metavar="DIR8", help="the directory to write")
    add("--head", metavar="HEAD", help="the head to keep (default: the head that config.json names)")
    add(
        "--text",
        type=pathlib.Path,
        metavar="FILE",
        help="UTF-8 text for the comparison (default: a part of Python's manual)",
    )
    add(
        "--source",
        type=pathlib.Path,
        metavar="FILE",
        help="the sources of the lines of --text, for models with an encoder",
    )
    add_errors(command)
    add("--no-compare", action="store_true", help="write the directory without a comparison")


def run(args: argparse.Namespace) -> int:
    import plmcore

    if args.source is not None and args.text is None:
        print("plmcore quantize: --source goes with --text, line by line", file=sys.stderr)
        return 2
    try:
        text, sources = (
            None if file is None else whole(file, args.errors) for file in (args.text, args.source)
        )
        write(args)
        print(args.out)
        if not args.no_compare:
            print(described(compared(args, text, sources), args.to))
    except (ValueError, TypeError, OSError, plmcore.OutOfMemoryError) as e:
        print(f"plmcore quantize: {str(e).removeprefix('quantize: ')}", file=sys.stderr)
        return 1
    return 0


def whole(file: pathlib.Path, errors: str) -> str:
    from plmcore.evaluate.texts import pieces

    return "".join(pieces(file, errors=errors)).replace("\r\n", "\n")


def write(args: argparse.Namespace) -> None:
    import plmcore
    from plmcore.runtime.progress import Progress

    with Progress(None, "tensor") as bar:
        plmcore.quantize(args.folder, args.to, out=args.out, head=args.head, progress=bar.reach)


def compared(args: argparse.Namespace, text: str | None, sources: str | None) -> Comparison:
    import plmcore
    from plmcore import compress
    from plmcore.cli.demo import manual
    from plmcore.evaluate.scoring import KINDS
    from plmcore.runtime.progress import Progress

    before, after = plmcore.load(args.folder, args.head), plmcore.load(args.out)
    if text is None:
        text = manual()[: CHARACTERS.get(KINDS.get(before.head, ""), MOST_CHARACTERS)]
        text = "\n".join(textwrap.wrap(text, LINE))
    total = 2 * len(text.encode())
    with Progress(total, "B") as bar:
        return compress.compare(
            before,
            after,
            text,
            None if sources is None else [line for line in sources.split("\n") if line.strip()],
            lambda done: bar.reach(min(done, total)),
        )


def described(found: Comparison, weights: str) -> str:
    """A table: before, after, and what became of it."""

    def line(name: str, before: str, after: str, change: str) -> str:
        return f"{name:<14} {before:>12} {after:>12}  {change}"

    (a, b), (slow, fast) = found.bytes, found.speed
    how = "greedy generation" if found.generates else "forward pass"
    lines = [
        line("", "before", weights, ""),
        line("weights, MB", f"{a / 1e6:,.1f}", f"{b / 1e6:,.1f}", f"{100 * b / a:.0f} %"),
        line("tokens/s", f"{slow:,.0f}", f"{fast:,.0f}", f"{fast / slow:.2f} x, {how}"),
    ]
    if found.perplexity is not None:
        x, y = map(float, found.perplexity)
        lines.append(line("perplexity", f"{x:,.3f}", f"{y:,.3f}", f"{100 * (y / x - 1):+.2f} %"))
    lines.append(line("same choice", "", f"{100 * found.agreement:.2f} %", ""))
    lines.append(line("output error", "", f"{100 * found.error:.2f} %", "of their length"))
    return "\n".join(lines)
