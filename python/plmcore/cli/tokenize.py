"""plmcore tokenize: vocabularies from text, and text as ids."""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Iterator

from plmcore.cli import texts
from plmcore.cli.arguments import Help, add_errors
from plmcore.files.text import lines_of

KINDS = ("wordpiece", "bpe", "byte-bpe", "unigram", "characters", "words")
ANSWERED = (ValueError, RuntimeError)
EXAMPLES = """\
examples:
  plmcore tokenize train texts/ --kind byte-bpe --vocab-size 8000 --out my-tokenizer
  plmcore tokenize train news.txt --kind wordpiece --family bert --vocab-size 30000 --out my-bert
  plmcore tokenize encode my-tokenizer --text "Once upon a time" --tokens
  plmcore tokenize encode my-tokenizer news.txt > ids.txt
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    group = commands.add_parser(
        "tokenize",
        help="train a tokenizer, or turn text into ids",
        description="Trains a tokenizer on text files, or encodes text with the tokenizer of a directory.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    what = group.add_subparsers(dest="what", metavar="train|encode", required=True)

    train = what.add_parser(
        "train",
        help="train a tokenizer",
        description="Trains a tokenizer and writes a directory that plm.load_tokenizer and transformers "
        "open. The same text gives the same vocabulary.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    train.add_argument(
        "files", nargs="+", type=pathlib.Path, metavar="FILE", help="UTF-8 text files, or folders of them"
    )
    train.add_argument(
        "--kind", choices=KINDS, default="byte-bpe", help="kind of the vocabulary (default: %(default)s)"
    )
    train.add_argument(
        "--vocab-size",
        type=int,
        metavar="N",
        help="number of tokens, special tokens included (default: 30000; characters: all)",
    )
    train.add_argument(
        "--family", metavar="NAME", help="family of the special tokens: bert, roberta, gpt2, albert, t5, ..."
    )
    train.add_argument(
        "--lower",
        action=argparse.BooleanOptionalAction,
        help="lower-case the text (default: that of the family)",
    )
    train.add_argument(
        "--min-count", type=int, metavar="N", help="smallest count of a pair, character or word"
    )
    train.add_argument(
        "--special",
        action="append",
        default=[],
        metavar="TOKEN",
        help="a further special token; may be repeated",
    )
    add_errors(train)
    train.add_argument(
        "--sample-mb",
        type=int,
        default=200,
        metavar="N",
        help="unigram: train on at most N megabytes (default: %(default)s)",
    )
    train.add_argument(
        "--seed", type=int, default=0, metavar="S", help="unigram: seed of the sample (default: %(default)s)"
    )
    train.add_argument(
        "--out", required=True, type=pathlib.Path, metavar="DIR", help="the directory to write"
    )

    encode = what.add_parser(
        "encode",
        help="print the ids of each line",
        description="Prints the ids of each line of files, of standard input, or of --text.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    encode.add_argument("folder", type=pathlib.Path, metavar="DIR", help="a directory with tokenizer files")
    encode.add_argument(
        "files",
        nargs="*",
        type=pathlib.Path,
        metavar="FILE",
        help="UTF-8 text files (default: standard input)",
    )
    encode.add_argument(
        "--text", action="append", metavar="TEXT", help="a text to encode, in place of files; may be repeated"
    )
    encode.add_argument("--tokens", action="store_true", help="print tokens instead of ids")
    add_errors(encode)
    encode.add_argument("--bare", action="store_true", help="leave out special tokens")


def run(args: argparse.Namespace) -> int:
    try:
        return train(args) if args.what == "train" else encode(args)
    except BrokenPipeError:  # `| head` has seen enough
        sys.stderr.close()
        return 0


def train(args: argparse.Namespace) -> int:
    from plmcore.tokenizers import train_tokenizer

    size = args.vocab_size
    if size is None and args.kind != "characters":
        size = 30_000
    tokenizer = train_tokenizer(
        args.files,
        kind=args.kind,
        vocab_size=size,
        family=args.family,
        lower=args.lower,
        min_count=args.min_count,
        special_tokens=args.special,
        errors=args.errors,
        sample_bytes=args.sample_mb * 10**6,
        seed=args.seed,
        out=args.out,
    )
    print(
        f"{args.out}: {tokenizer.kind} of the family {tokenizer.family.name}, {tokenizer.vocab_size:,} tokens"
    )
    return 0


def encode(args: argparse.Namespace) -> int:
    from plmcore.tokenizers import load_tokenizer

    tokenizer = load_tokenizer(args.folder)
    for lines in _batches(args):
        for ids in tokenizer.encode_ids(lines):
            if not args.bare:
                ids, _ = tokenizer.build(ids)
            shown = [tokenizer.token_of(i) if args.tokens else str(i) for i in ids.tolist()]
            print(" ".join(map(str, shown)))
    return 0


def _batches(args: argparse.Namespace, size: int = 1000) -> Iterator[list[str]]:
    """Lines without their ends, some at a time."""
    batch: list[str] = []
    for line in _lines(args):
        batch.append(line)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _lines(args: argparse.Namespace) -> Iterator[str]:
    if args.text is not None:
        yield from (texts.argument(text, args.errors) for text in args.text)
        return
    for file in args.files or ["-"]:
        with texts.source(file) as f:
            yield from (line for _, line in lines_of(f, args.errors, texts.name_of(file)))
