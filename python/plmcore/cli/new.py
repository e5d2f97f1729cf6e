"""plmcore new: the directory of an untrained model that reads words."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

import plmcore
from plmcore.cli.arguments import Help, add_errors, positive
from plmcore.cli.convert import setting

EXAMPLES = """\
examples:
  plmcore new cvt --vectors glove.6B.300d.txt --text news.txt --out cvt-dir
  plmcore new cvt --vectors glove.txt --text news.txt --set d_uni=256 --set d_projection=128 --out cvt-dir
  plmcore new cnn --text train.tsv --vectors vectors.bin --cased --set static=true --out cnn-dir
  plmcore finetune cvt-dir --task tagging --train train.txt --unlabelled news.txt --out run
"""


def add_parser(commands: Any) -> None:
    command = commands.add_parser(
        "new",
        help="make a model that reads words, for finetune",
        description="Writes the directory OUT of an untrained model: its words are those of the text that "
        "have a vector or are seen often, each with its vector; without a text all words that have a "
        "vector. Families that are pre-trained begin with plmcore pretrain instead.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    add = command.add_argument
    add("family", metavar="FAMILY", help="a family that reads words: cnn, cvt, ...")
    add("--text", nargs="+", metavar="FILE", help="text files or folders, words between white space")
    add("--vectors", metavar="FILE", help="word vectors: word2vec, GloVe or safetensors")
    add("--vocab", type=positive, metavar="N", help="at most so many words (default: all)")
    add(
        "--min-count",
        type=positive,
        default=2,
        metavar="N",
        help="how often a word without a vector must be seen (default: %(default)s)",
    )
    add("--cased", action="store_true", help="keep words apart that differ in upper and lower case")
    add("--head", default="base", metavar="HEAD", help="the head (default: base; finetune adds its own)")
    add("--seed", type=int, default=0, metavar="S", help="seed of the random weights (default: %(default)s)")
    add(
        "--set",
        action="append",
        type=setting,
        default=[],
        metavar="KEY=VALUE",
        help="a key of config.json, as d_uni=256; may be repeated",
    )
    add_errors(command)
    add("--out", type=pathlib.Path, required=True, metavar="OUT", help="the directory to write")


def run(args: argparse.Namespace) -> int:
    lm = plmcore.new(
        args.family,
        out=args.out,
        text=args.text,
        vectors=args.vectors,
        vocab_size=args.vocab,
        min_count=args.min_count,
        lower=not args.cased,
        errors=args.errors,
        head=args.head,
        seed=args.seed,
        **dict(args.set),
    )
    print(f"{args.out}: {lm.config.vocab_size:,} words, {lm.model.num_parameters():,} parameters")
    return 0
