"""Kinds of arguments that several commands take."""

from __future__ import annotations

import argparse
from typing import Any


def positive(text: str) -> int:
    n = int(text)
    if n < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {n}")
    return n


def add_errors(parser: Any, default: str | None = "strict") -> None:
    """--errors, of a command that reads text. None: not given."""
    parser.add_argument(
        "--errors",
        choices=("strict", "replace"),
        default=default,
        help="what bytes that are not UTF-8 are: an error that names the first of them, or U+FFFD (default: strict)",
    )
