"""Kinds of arguments that several commands take."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    n = int(text)
    if n < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {n}")
    return n
