"""plmcore pretrain: text files to a model directory."""

from __future__ import annotations

import argparse
import pathlib

import plmcore
from plmcore.cli import endings
from plmcore.cli.arguments import Help, add_device, add_errors, positive

EPILOG = """\
examples:
  plmcore pretrain gpt2 --size tiny --text book.txt --out run
  plmcore pretrain bert --size mini --text wiki/ --steps 20000 --save-every 1000 --out run
  plmcore pretrain transformer --size mini --text news.en --target news.de --out run
  plmcore pretrain t5 --size mini --text wiki/ --supervised sst2=sst.tsv --set mixture.text_rate=0.7 --out run
  plmcore pretrain gpt2 --text book.txt --lr 5e-4 --batch 24 --out run
  plmcore pretrain word2vec --text wiki.txt --set model.dim=300 --out run     word vectors; also glove
  plmcore pretrain --out run --resume --steps 4000                            make a run longer
  plmcore pretrain --out run --resume                                         continue a stopped run
  plmcore pretrain --config run/config.toml --set optim.lr=3e-4 --out other   repeat a run with one change
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "pretrain",
        help="train a model from text files",
        description="Trains a tokenizer and a model on text, with the objective and the hyper-parameters "
        "of the model's family. Writes a run directory DIR: DIR/final is the model directory, "
        "DIR/report.html has the curves, DIR/checkpoints serves --resume. "
        "plm.load and transformers open DIR/final.",
        epilog=EPILOG,
        formatter_class=Help,
    )
    command.add_argument(
        "family",
        nargs="?",
        metavar="FAMILY",
        help="model family, such as gpt2, bert, t5 or word2vec; a name that is none of them is answered with "
        "all",
    )
    command.add_argument(
        "--size",
        metavar="SIZE",
        help="model size: tiny, mini, small, medium, base, large, or another size of the family (default: "
        "tiny)",
    )
    command.add_argument(
        "--text",
        nargs="+",
        type=pathlib.Path,
        default=[],
        metavar="FILE",
        help="text files or folders of them",
    )
    command.add_argument(
        "--target",
        nargs="+",
        type=pathlib.Path,
        default=[],
        metavar="FILE",
        help="translations of the lines of --text, for the families transformer and rnn-seq2seq",
    )
    command.add_argument(
        "--supervised",
        nargs="+",
        default=[],
        metavar="TASK=FILE",
        help="tables of supervised tasks to mix with the text, for t5 and bart: a task of T5, or a table as "
        "in config.toml",
    )
    command.add_argument(
        "--steps", type=positive, metavar="N", help="number of steps (default: that of the family's recipe)"
    )
    command.add_argument(
        "--lr", type=float, metavar="R", help="the highest learning rate: the setting optim.lr"
    )
    command.add_argument(
        "--batch", type=positive, metavar="N", help="examples in a batch: the setting data.batch"
    )
    command.add_argument(
        "--save-every",
        type=positive,
        metavar="K",
        help="write a checkpoint every K steps (default: ten checkpoints in a run)",
    )
    command.add_argument(
        "--seed", type=int, metavar="S", help="seed of weights, order, noise and dropout (default: 0)"
    )
    command.add_argument(
        "--tokenizer",
        metavar="DIR|KIND",
        help="a directory with tokenizer files, or the kind to train: byte-bpe, wordpiece, unigram, bpe, "
        "words, characters",
    )
    add_errors(command, default=None)
    add_device(command)
    command.add_argument(
        "--config", type=pathlib.Path, metavar="FILE", help="start from the config.toml of another run"
    )
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="A.B=C",
        help="change one setting of config.toml; may be repeated",
    )
    command.add_argument(
        "--out", type=pathlib.Path, required=True, metavar="DIR", help="the run directory to write"
    )
    command.add_argument(
        "--resume",
        action="store_true",
        help="continue from the last checkpoint in DIR, or start if there is none; more steps than before "
        "make the run longer",
    )


def run(args: argparse.Namespace) -> int:
    return endings.run(
        "pretrain",
        args.out,
        lambda: plmcore.pretrain(
            args.family,
            out=args.out,
            text=args.text,
            target=args.target,
            supervised=args.supervised,
            size=args.size,
            steps=args.steps,
            lr=args.lr,
            batch=args.batch,
            save_every=args.save_every,
            seed=args.seed,
            device=args.device,
            tokenizer=args.tokenizer,
            errors=args.errors,
            config=args.config,
            changes=args.set,
            resume=args.resume,
        ),
    )
