"""plmcore corpus: text files and folders to a binary corpus."""

from __future__ import annotations

import argparse
import pathlib
import sys
import time

EXAMPLES = """\
examples:
  python -m plmcore corpus books/ wiki.txt.gz --tokenizer bert-base-uncased --out corpus
  python -m plmcore corpus pages.jsonl --field body --tokenizer my-tokenizer --out pages --workers 8
  python -m plmcore corpus --check corpus
"""


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "corpus",
        help="tokenise text files and folders into a binary corpus",
        description="Tokenises files of any size, on all cores, into a directory that plmcore.data.Corpus opens without loading it. Files in .jsonl, .csv, .tsv "
        "and .parquet have a document in each record, others are text; all may be packed (.gz). A run that was stopped goes on when the command is repeated.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("inputs", nargs="*", type=pathlib.Path, metavar="FILE|DIR", help="what to read")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", help="the corpus to write")
    parser.add_argument("--tokenizer", type=pathlib.Path, metavar="DIR", help="a directory with tokenizer files")
    parser.add_argument(
        "--family", metavar="NAME", help="of the tokenizer, where its files do not say: bert, gpt2, t5, ..."
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="threads or processes that encode (default: one for each core)"
    )
    parser.add_argument(
        "--documents",
        choices=("blank", "line", "file"),
        default="blank",
        help="in text files: separated by blank lines, one to a line, one to a file (default: %(default)s)",
    )
    parser.add_argument(
        "--sentences",
        choices=("rule", "lines", "document"),
        default="rule",
        help="end by a rule, with the line, or with the document (default: %(default)s)",
    )
    parser.add_argument("--unwrap", action="store_true", help="read line breaks inside a document as spaces")
    parser.add_argument(
        "--field", default="text", metavar="NAME", help="of records: which is the text (default: %(default)s)"
    )
    parser.add_argument("--replace-invalid", action="store_true", help="read bytes that are not UTF-8 as U+FFFD")
    parser.add_argument("--overwrite", action="store_true", help="replace a corpus that is there")
    parser.add_argument(
        "--check", type=pathlib.Path, metavar="DIR", help="only read a corpus through and verify its checksums"
    )


def run(args: argparse.Namespace) -> int:
    if args.check is None and not (args.inputs and args.out and args.tokenizer):
        print("plmcore corpus: FILE|DIR, --out and --tokenizer are needed, or --check", file=sys.stderr)
        return 2
    try:
        return check(args.check) if args.check is not None else write(args)
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        return 130
    except (ValueError, OSError, RuntimeError, ImportError) as e:
        print(f"plmcore corpus: {e}", file=sys.stderr)
        return 1


def check(folder: pathlib.Path) -> int:
    from plmcore.data import Corpus

    print(f"{Corpus.open(folder)}: sound")
    return 0


def write(args: argparse.Namespace) -> int:
    from plmcore.cli.progress import Progress
    from plmcore.data import write_corpus
    from plmcore.tokenizers import load_tokenizer

    bar: Progress | None = None

    def show(done: int, total: int) -> None:
        nonlocal bar
        bar = bar or Progress(total // 10**6, "MB")
        bar.update(done // 10**6)

    start = time.monotonic()
    corpus = write_corpus(
        args.out,
        args.inputs,
        load_tokenizer(args.tokenizer, family=args.family),
        documents=args.documents,
        sentences=args.sentences,
        unwrap=args.unwrap,
        field=args.field,
        errors="replace" if args.replace_invalid else "strict",
        workers=args.workers,
        overwrite=args.overwrite,
        progress=show,
    )
    if bar is not None:
        bar.clear()
    read = sum(size for _, size in corpus.source["files"])
    print(f"{corpus}; {read / 1e6:,.1f} MB in {time.monotonic() - start:.1f} s")
    return 0
