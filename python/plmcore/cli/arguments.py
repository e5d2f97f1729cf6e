"""Kinds of arguments that several commands take."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from plmcore._core import (
    ArgumentError,
    DeviceError,
    DTypeError,
    FormatError,
    GraphError,
    IndexRangeError,
    OutOfMemoryError,
    ShapeError,
    TraceError,
)

# What a wrong file, argument or machine is answered with: one line says it all.
ERRORS = (
    ArgumentError,
    DeviceError,
    DTypeError,
    FormatError,
    GraphError,
    IndexRangeError,
    OutOfMemoryError,
    ShapeError,
    TraceError,
)


class Help(argparse.RawDescriptionHelpFormatter):
    """Wraps descriptions to the terminal; examples, which have lines of their own, stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent)


def positive(text: str) -> int:
    n = int(text)
    if n < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {n}")
    return n


def add_texts(parser: Any) -> None:
    """The texts that plmcore.cli.texts reads."""
    parser.add_argument(
        "texts",
        nargs="*",
        metavar="TEXT|FILE",
        help="texts, or files with a text on each line (default: standard input, also -)",
    )


def add_batch(parser: Any) -> None:
    """--batch, of a command that runs a model over texts."""
    parser.add_argument(
        "--batch",
        type=positive,
        default=32,
        metavar="B",
        help="number of texts in a batch (default: %(default)s)",
    )


def add_device(parser: Any) -> None:
    """--device, of a command that runs a model."""
    parser.add_argument(
        "--device", metavar="NAME", help="where the model runs: cpu, cuda, cuda:1 (default: cpu)"
    )


def add_errors(parser: Any, default: str | None = "strict") -> None:
    """--errors, of a command that reads text. None: not given."""
    parser.add_argument(
        "--errors",
        choices=("strict", "replace"),
        default=default,
        help="how to read bytes that are not UTF-8: strict stops with an error that names the first one, "
        "replace reads U+FFFD (default: strict)",
    )
