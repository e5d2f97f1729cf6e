"""plmcore new: a model directory with fresh weights, to be trained for a task."""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Any

from plmcore.cli.arguments import ERRORS, Help, positive
from plmcore.cli.convert import setting

EXAMPLES = """\
examples:
  plmcore new cnn --text train.tsv --out cnn                         every word of the text, random vectors
  plmcore new cnn --vectors glove.6B.300d.txt --set static=true --out cnn
  plmcore new cnn --text train.tsv --vectors vectors.bin --set filters=[[2,50],[3,50]] --out cnn
  plmcore finetune cnn --task classification --train train.tsv --out run
"""


def add_parser(commands: Any) -> None:
    command = commands.add_parser(
        "new",
        help="write a model with fresh weights, to train it for a task",
        description="Writes a model directory with fresh weights and a tokenizer of whole words. Word "
        "vectors may give the embeddings. plmcore finetune trains the model for a task.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    add = command.add_argument
    add("family", metavar="FAMILY", help="a family whose tokens are whole words: cnn, ...")
    add("--text", nargs="+", type=pathlib.Path, default=[], metavar="FILE", help="texts whose words it knows")
    add("--vectors", type=pathlib.Path, metavar="FILE", help="word vectors: word2vec, GloVe or safetensors")
    add("--vocab", type=positive, metavar="N", help="the most words (default: all)")
    add("--lower", action="store_true", help="read texts in lower case")
    add("--head", default="base", metavar="HEAD", help="the head (default: base; finetune adds its own)")
    add("--seed", type=int, default=0, metavar="S", help="seed of the weights (default: 0)")
    add("--set", action="append", type=setting, default=[], metavar="KEY=VALUE", help="a key of config.json")
    add("--out", type=pathlib.Path, required=True, metavar="OUT", help="the directory to write")


def run(args: argparse.Namespace) -> int:
    import plmcore

    try:
        lm = plmcore.new(
            args.family,
            out=args.out,
            text=args.text,
            vectors=args.vectors,
            vocab=args.vocab,
            lower=args.lower,
            head=args.head,
            seed=args.seed,
            **dict(args.set),
        )
    except (*ERRORS, OSError) as e:
        print(f"plmcore new: {e}", file=sys.stderr)
        return 1
    print(
        f"{args.out}: {args.family}, {lm.config.vocab_size:,} words, {lm.model.num_parameters():,} parameters"
    )
    return 0
