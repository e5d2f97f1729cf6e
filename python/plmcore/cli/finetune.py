"""plmcore finetune: a model directory and labelled examples to a model for a task."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

import plmcore
from plmcore.cli import endings
from plmcore.cli.arguments import add_errors, positive

EXAMPLES = """\
examples:
  plmcore finetune bert-dir --task classification --train train.tsv --dev dev.tsv --test test.tsv --out run
  plmcore finetune bert-dir --task pair --columns label,text,pair --train snli.tsv --out run
  plmcore finetune bert-dir --task sst2 --data glue/SST-2 --out run        a published task from its folder
  plmcore finetune bert-dir --task tagging --train eng.train --dev eng.testa --set task.metrics='["entities"]' --out run
  plmcore finetune bert-dir --task qa --train train-v1.1.json --dev dev-v1.1.json --out run
  plmcore finetune bert-dir --task pair --train pairs.tsv --lr 5e-5 --batch 16 --epochs 4 --lora 8 --out run
  plmcore finetune --out run --resume --epochs 5                           make a run longer, ended or not
  plmcore finetune --out run --resume                                      go on with a run that was stopped
"""


def add_parser(commands: Any) -> None:
    command = commands.add_parser(
        "finetune",
        help="train a model directory for a task",
        description="Trains the model of DIR, with a new head, on labelled examples. The directory OUT gets config.toml, metrics.jsonl, scores.json, "
        "predictions, log.txt, checkpoints, report.html and final: a model directory that plm.load and transformers open.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument
    add("model", nargs="?", metavar="DIR", help="a model directory with tokenizer files")
    add(
        "--task",
        metavar="TASK",
        help="classification, pair, regression, multiple-choice, tagging, qa, seq2seq, lm; or sst2, snli, squad, ...",
    )
    add("--train", metavar="FILE", help="what to learn from: TSV, CSV, JSON lines; columns of tags; SQuAD")
    add("--dev", metavar="FILE", help="evaluated after every epoch")
    add("--test", metavar="FILE", help="evaluated in the end; may have no labels")
    add("--data", metavar="FOLDER", help="the folder of a published task, instead of files")
    add(
        "--columns",
        metavar="A,B,C",
        help="the columns of a table without a header, as label,text,pair; or text=sentence,label=class",
    )
    add("--labels", metavar="A,B,C", help="the classes, in the order of their numbers (default: those that occur)")
    add("--epochs", type=positive, metavar="N", help="times to go through the examples (default: 3)")
    add("--steps", type=positive, metavar="N", help="updates of the parameters, instead of epochs")
    add("--lr", type=float, metavar="R", help="the highest learning rate: the setting optim.lr")
    add("--batch", type=positive, metavar="N", help="examples that run together: the setting data.batch")
    add(
        "--lora",
        type=positive,
        metavar="RANK",
        help="train LoRA matrices of this rank instead: the setting adapt.lora_rank",
    )
    add("--save-every", type=positive, metavar="K", help="a checkpoint every K steps (default: each epoch)")
    add("--seed", type=int, metavar="S", help="of the new head, order and dropout (default: 0)")
    add_errors(command, default=None)
    add("--config", type=pathlib.Path, metavar="FILE", help="the config.toml of another run")
    add("--set", action="append", default=[], metavar="A.B=C", help="one setting of config.toml; may be repeated")
    add("--out", type=pathlib.Path, required=True, metavar="OUT", help="the run's directory")
    add(
        "--resume",
        action="store_true",
        help="go on from the last checkpoint in OUT, or begin if there is none; more steps than before make the run longer",
    )


def run(args: argparse.Namespace) -> int:
    return endings.run(
        "finetune",
        args.out,
        lambda: plmcore.finetune(
            args.model, args.task, out=args.out, train=args.train, dev=args.dev, test=args.test, folder=args.data,
            columns=args.columns and args.columns.split(","), labels=args.labels and args.labels.split(","), epochs=args.epochs,
            steps=args.steps, lr=args.lr, batch=args.batch, lora=args.lora, save_every=args.save_every, seed=args.seed, errors=args.errors, config=args.config, changes=args.set, resume=args.resume,
        ),
    )  # fmt: skip
