"""plmcore corpus: text files and folders to a binary corpus."""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import sys
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, cast

from plmcore.cli.arguments import Help, add_errors
from plmcore.cli.show import setting
from plmcore.objectives import NAMES, make

if TYPE_CHECKING:
    from plmcore.objectives.objective import Objective

OTHER_DATA = ("translation", "text-to-text")  # made of two corpora, and of records
STEPS = 1000  # batches that are made to see how long they take

ANSWERED = (ValueError, TypeError, RuntimeError)
EXAMPLES = """\
examples:
  plmcore corpus books/ wiki.txt.gz --tokenizer bert-base-uncased --out corpus
  plmcore corpus pages.jsonl --field body --tokenizer my-tokenizer --out pages --workers 8
  plmcore corpus wiki.txt --tokenizer bert-base-uncased --out corpus --objective masked-lm --length 128
  plmcore corpus --check corpus
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "corpus",
        help="tokenise text files into a binary corpus",
        description="Tokenises files of any size on all cores. Writes a directory that "
        "plmcore.data.Corpus maps into memory. Files in .jsonl, .csv, .tsv and .parquet have "
        "a document in each record. Other files are text. Files may be packed with gzip. "
        "Repeat the command to continue a stopped run.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    parser.add_argument(
        "inputs", nargs="*", type=pathlib.Path, metavar="FILE|DIR", help="files and folders to read"
    )
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", help="the corpus directory to write")
    parser.add_argument(
        "--tokenizer", type=pathlib.Path, metavar="DIR", help="a directory with tokenizer files"
    )
    parser.add_argument(
        "--family",
        metavar="NAME",
        help="family of the tokenizer, if its files do not name it: bert, gpt2, t5, ...",
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="number of workers (default: one for each core)"
    )
    parser.add_argument(
        "--documents",
        choices=("blank", "line", "file"),
        default="blank",
        help="a document of a text file ends at a blank line, at a line end, or at the end of the file "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--sentences",
        choices=("rule", "lines", "document"),
        default="rule",
        help="a sentence ends by a rule, at a line end, or with the document (default: %(default)s)",
    )
    parser.add_argument("--unwrap", action="store_true", help="read line breaks inside a document as spaces")
    parser.add_argument(
        "--field",
        default="text",
        metavar="NAME",
        help="field of a record that holds the text (default: %(default)s)",
    )
    add_errors(parser)
    parser.add_argument(
        "--objective",
        choices=[name for name in NAMES if name not in OTHER_DATA],
        help="also make batches for this objective, and print their number, rate and memory",
    )
    parser.add_argument(
        "--length", type=int, default=128, metavar="N", help="tokens in an example (default: %(default)s)"
    )
    parser.add_argument(
        "--batch-size", type=int, default=32, metavar="N", help="examples in a batch (default: %(default)s)"
    )
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUE",
        help="settings of the objective",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing corpus")
    parser.add_argument(
        "--check",
        type=pathlib.Path,
        metavar="DIR",
        help="read a corpus and verify its checksums; do nothing else",
    )


def run(args: argparse.Namespace) -> int:
    if args.check is None and not (args.inputs and args.out and args.tokenizer):
        print("plmcore corpus: FILE|DIR, --out and --tokenizer are needed, or --check", file=sys.stderr)
        return 2
    try:
        return check(args.check) if args.check is not None else write(args)
    except KeyboardInterrupt:
        print("\nstopped; repeat the command to continue", file=sys.stderr)
        return 130


def check(folder: pathlib.Path) -> int:
    from plmcore.data import Corpus

    print(f"{Corpus.open(folder)}: sound")
    return 0


def write(args: argparse.Namespace) -> int:
    from plmcore.data import write_corpus
    from plmcore.files.text import check_text
    from plmcore.runtime.progress import Progress
    from plmcore.tokenizers import load_tokenizer

    settings = dict(setting(s) for s in args.set)
    tokenizer = load_tokenizer(args.tokenizer, family=args.family)
    check_text(args.inputs)
    start = time.monotonic()
    with Progress(None, "B") as bar:
        corpus = write_corpus(
            args.out,
            args.inputs,
            tokenizer,
            documents=args.documents,
            sentences=args.sentences,
            unwrap=args.unwrap,
            field=args.field,
            errors=args.errors,
            workers=args.workers,
            overwrite=args.overwrite,
            progress=bar.reach,
        )
    read = sum(size for _, size in corpus.source["files"])
    print(f"{corpus}; {read / 1e6:,.1f} MB in {time.monotonic() - start:.1f} s")
    if args.objective is not None:
        objective = make(args.objective, corpus, tokenizer, length=args.length, **settings)
        print(f"{args.objective}: {batches(objective, args.batch_size)}")
    return 0


def batches(objective: Objective, size: int) -> str:
    """What the first batches of a training are like."""
    from plmcore.data import Batches, mapped

    made = Batches(objective, size, seed=0)
    steps = min(made.steps_per_epoch(), STEPS)
    start = time.monotonic()
    with contextlib.closing(cast("Generator[Any]", made.stream(0))) as stream:
        batch = next(stream)
        for _ in range(steps - 1):
            batch = next(stream)
    rate = steps / (time.monotonic() - start)
    arrays = ", ".join(f"{name} {list(value.shape)}" for name, value in batch.items())
    return (
        f"{len(objective):,} examples, {made.steps_per_epoch():,} batches an epoch, {rate:,.0f} a "
        f"second: {arrays}; "
        f"{mapped.peak() / 1e6:,.0f} MB of memory at most"
    )
