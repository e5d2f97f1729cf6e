"""plmcore pretrain: text files to a model directory."""

from __future__ import annotations

import argparse
import pathlib

import plmcore
from plmcore.cli import endings
from plmcore.cli.arguments import add_errors, positive

EPILOG = """\
examples:
  plmcore pretrain gpt2 --size tiny --text book.txt --out run
  plmcore pretrain bert --size mini --text wiki/ --steps 20000 --save-every 1000 --out run
  plmcore pretrain transformer --size mini --text news.en --target news.de --out run
  plmcore pretrain t5 --size mini --text wiki/ --supervised sst2=train.tsv --set mixture.text_rate=0.7 --out run
  plmcore pretrain gpt2 --text book.txt --lr 5e-4 --batch 24 --out run
  plmcore pretrain --out run --resume --steps 4000                            make a run longer, ended or not
  plmcore pretrain --out run --resume                                         go on with a run that was stopped
  plmcore pretrain --config run/config.toml --set optim.lr=3e-4 --out other   the same again, with one change
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "pretrain",
        help="train a model from text files",
        description="Trains a tokenizer and a model of a family on text, with the family's own objective and hyper-parameters. The directory DIR gets "
        "config.toml, metrics.jsonl, log.txt, checkpoints, report.html and, in the end, final: a model directory that plm.load and transformers open.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "family",
        nargs="?",
        metavar="FAMILY",
        help="gpt2, bert, roberta, albert, xlnet, bart, t5, transformer, gpt3 or openai-gpt",
    )
    command.add_argument(
        "--size",
        metavar="SIZE",
        help="tiny, mini, small, medium, base, large or what else the family has (default: tiny)",
    )
    command.add_argument(
        "--text", nargs="+", type=pathlib.Path, default=[], metavar="FILE", help="text files or folders"
    )
    command.add_argument(
        "--target",
        nargs="+",
        type=pathlib.Path,
        default=[],
        metavar="FILE",
        help="translations of TEXT, line by line (transformer)",
    )
    command.add_argument(
        "--supervised",
        nargs="+",
        default=[],
        metavar="TASK=FILE",
        help="tables of supervised tasks, mixed with the text (t5, bart): a task of T5, or a table as in config.toml",
    )
    command.add_argument(
        "--steps", type=positive, metavar="N", help="updates of the parameters (default: the recipe's)"
    )
    command.add_argument("--lr", type=float, metavar="R", help="the highest learning rate: the setting optim.lr")
    command.add_argument(
        "--batch", type=positive, metavar="N", help="examples that run together: the setting data.batch"
    )
    command.add_argument(
        "--save-every", type=positive, metavar="K", help="a checkpoint every K steps (default: ten in all)"
    )
    command.add_argument("--seed", type=int, metavar="S", help="of weights, order, noise and dropout (default: 0)")
    command.add_argument(
        "--tokenizer",
        metavar="DIR|KIND",
        help="a directory with tokenizer files, or the kind to train: byte-bpe, wordpiece, unigram, bpe, words, characters",
    )
    add_errors(command, default=None)
    command.add_argument("--config", type=pathlib.Path, metavar="FILE", help="the config.toml of another run")
    command.add_argument(
        "--set", action="append", default=[], metavar="A.B=C", help="one setting of config.toml; may be repeated"
    )
    command.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR", help="the run's directory")
    command.add_argument("--resume", action="store_true", help="go on from the last checkpoint in DIR, or begin if there is none; more steps than before make the run longer")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    return endings.run(
        "pretrain",
        args.out,
        lambda: plmcore.pretrain(
            args.family, out=args.out, text=args.text, target=args.target, supervised=args.supervised, size=args.size, steps=args.steps, lr=args.lr, batch=args.batch, save_every=args.save_every, seed=args.seed,
            tokenizer=args.tokenizer, errors=args.errors, config=args.config, changes=args.set, resume=args.resume,
        ),
    )  # fmt: skip
