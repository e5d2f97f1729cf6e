"""plmcore embed: a vector for each text of a file, to .npy or JSON lines."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import pathlib
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any, cast

import numpy as np

import plmcore
from plmcore.cli import texts
from plmcore.cli.arguments import Help, add_batch, add_device, add_errors
from plmcore.files.whole import atomic_write

BATCHES = 32  # that are read, and sorted by length, together
ANSWERED = (ValueError, TypeError)
EXAMPLES = """\
examples:
  plmcore embed all-MiniLM-L6-v2 sentences.txt --out vectors.npy     float32 [lines, width]
  plmcore embed bert-dir reviews.jsonl --field body --out vectors.jsonl
  cat sentences.txt | plmcore embed bert-dir > vectors.jsonl         {"text": ..., "vector": [...]} lines
"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "embed",
        help="turn texts into vectors",
        description="Writes a vector for each line of a file or of standard input. Row i belongs to line i. "
        "Pooling and normalisation come from the model directory; the default is the mean "
        "over tokens. Memory does not grow with the number of lines.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    parser.add_argument(
        "folder", type=pathlib.Path, metavar="DIR", help="a model directory with tokenizer files"
    )
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help="a file with a text on each line; it may be packed with gzip (default: standard input)",
    )
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        metavar="FILE",
        help="the file to write, .npy or .jsonl (default: JSON lines to standard output)",
    )
    parser.add_argument(
        "--field", metavar="NAME", help="read each line as a JSON object, and take its text from this field"
    )
    add_errors(parser)
    add_device(parser)
    add_batch(parser)


def run(args: argparse.Namespace) -> int:
    if args.out is not None and args.out.suffix not in WRITERS:
        raise plmcore.ArgumentError(f"--out must end in {' or '.join(WRITERS)}, got '{args.out}'")
    lm = plmcore.load(args.folder, device=args.device)
    if lm.tokenizer is None:
        raise plmcore.ArgumentError(f"'{args.folder}' has no tokenizer files")
    with contextlib.closing(cast("Generator[str]", read(args))) as lines:
        write = WRITERS[".jsonl" if args.out is None else args.out.suffix]
        with atomic_write(args.out) if args.out else contextlib.nullcontext(sys.stdout.buffer) as out:
            write(out, vectors(lm, lines, args.batch))
    return 0


def read(args: argparse.Namespace) -> Iterator[str]:
    if args.field is None:
        yield from texts.lines(args.file, args.errors)
    else:
        yield from (found for (found,) in texts.lines(args.file, args.errors, [args.field]))


Found = Iterator[tuple[list[str], np.ndarray]]


def vectors(lm: plmcore.LanguageModel, lines: Iterator[str], batch: int) -> Found:
    """Texts, and their vectors [n, C], some at a time."""
    while some := list(itertools.islice(lines, BATCHES * batch)):
        yield some, lm.encode(some, batch_size=batch)


def write_jsonl(out: Any, found: Found) -> None:
    for some, arrays in found:
        for text, shown in zip(some, arrays.astype(str)):  # the shortest digits that mean the same float32
            record = {"text": text, "vector": [float(x) for x in shown]}
            out.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        out.flush()


def write_npy(out: Any, found: Found) -> None:
    """The header has room for any number of rows, and gets it in the end."""
    rows = width = 0
    header(out, rows, width)
    for some, arrays in found:
        width = arrays.shape[1]
        if not rows:  # the first: now the width is known
            out.seek(0)
            header(out, rows, width)
        out.write(np.ascontiguousarray(arrays, np.float32).tobytes())
        rows += len(some)
    out.seek(0)
    header(out, rows, width)


def header(out: Any, rows: int, width: int) -> None:
    np.lib.format.write_array_header_1_0(
        out, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)}
    )


WRITERS: dict[str, Callable[[Any, Found], None]] = {".npy": write_npy, ".jsonl": write_jsonl}
