"""plmcore finetune: a model directory and labelled examples to a model for a task."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any

import plmcore
from plmcore.cli import endings
from plmcore.cli.arguments import Help, add_device, add_errors, positive

EXAMPLES = """\
examples:
  plmcore finetune bert-dir --task classification --train train.tsv --dev dev.tsv --test test.tsv --out run
  plmcore finetune bert-dir --task pair --columns label,text,pair --train snli.tsv --out run
  plmcore finetune bert-dir --task sst2 --data glue/SST-2 --out run        a published task from its folder
  plmcore finetune bert-dir --task tagging --train eng.train --set task.metrics='["entities"]' --out run
  plmcore finetune bert-dir --task qa --train train-v1.1.json --dev dev-v1.1.json --out run
  plmcore finetune bert-dir --task pair --train pairs.tsv --lr 5e-5 --batch 16 --epochs 4 --lora 8 --out run
  plmcore finetune cvt-dir --task tagging --train train.txt --unlabelled text.txt --steps 5000 --out run
  plmcore finetune --out run --resume --epochs 5                           make a run longer
  plmcore finetune --out run --resume                                      continue a stopped run
"""


def add_parser(commands: Any) -> None:
    command = commands.add_parser(
        "finetune",
        help="train a model for a task, from labelled examples",
        description="Trains the model of DIR with a new head on labelled examples. "
        "Writes a run directory OUT: "
        "OUT/final is the model directory, OUT/scores.json has the scores, "
        "OUT/report.html has the curves. plm.load and transformers open OUT/final.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    add = command.add_argument
    add("model", nargs="?", metavar="DIR", help="a model directory with tokenizer files")
    add(
        "--task",
        metavar="TASK",
        help="the kind of task: classification, pair, regression, multiple-choice, tagging, qa, seq2seq, "
        "lm; or a published task: sst2, snli, squad, ...",
    )
    add(
        "--train",
        metavar="FILE",
        help="training examples: TSV, CSV or JSON lines; CoNLL columns for tagging; SQuAD for qa",
    )
    add("--dev", metavar="FILE", help="examples for the evaluation after every epoch")
    add("--test", metavar="FILE", help="examples for the evaluation at the end; they may have no labels")
    add("--data", metavar="FOLDER", help="the folder of a published task, in place of files")
    add(
        "--unlabelled",
        metavar="FILE",
        help="text to learn from too, a sentence on each line, for models with auxiliary heads (cvt)",
    )
    add(
        "--also",
        action="append",
        type=table,
        default=[],
        metavar="TASK=FILE",
        help="a further task of the same model (cvt), e.g. "
        """'{name = "pos", task = "tagging", train = "pos.txt", dev = "pos-dev.txt"}'; may be repeated""",
    )
    add(
        "--columns",
        metavar="A,B,C",
        help="column names of a table without a header, e.g. label,text,pair; or a choice of columns, e.g. "
        "text=sentence,label=class",
    )
    add(
        "--labels",
        metavar="A,B,C",
        help="the classes in their order (default: the classes of the training examples)",
    )
    add("--epochs", type=positive, metavar="N", help="number of epochs (default: 3)")
    add("--steps", type=positive, metavar="N", help="number of steps, in place of epochs")
    add("--lr", type=float, metavar="R", help="the highest learning rate: the setting optim.lr")
    add("--batch", type=positive, metavar="N", help="examples in a batch: the setting data.batch")
    add(
        "--lora",
        type=positive,
        metavar="RANK",
        help="train LoRA matrices of this rank: the setting adapt.lora_rank",
    )
    add(
        "--save-every",
        type=positive,
        metavar="K",
        help="write a checkpoint every K steps (default: after each epoch)",
    )
    add("--seed", type=int, metavar="S", help="seed of the new head, the order and dropout (default: 0)")
    add_errors(command, default=None)
    add_device(command)
    add("--config", type=pathlib.Path, metavar="FILE", help="start from the config.toml of another run")
    add(
        "--set",
        action="append",
        default=[],
        metavar="A.B=C",
        help="change one setting of config.toml; may be repeated",
    )
    add("--out", type=pathlib.Path, required=True, metavar="OUT", help="the run directory to write")
    add(
        "--resume",
        action="store_true",
        help="continue from the last checkpoint in OUT, or start if there is none; more steps or epochs "
        "than before make the run longer",
    )


def table(argument: str) -> dict[str, Any]:
    from plmcore.tasks import further

    try:
        return further.parse(argument)
    except plmcore.ArgumentError as e:
        raise argparse.ArgumentTypeError(str(e)) from None


def run(args: argparse.Namespace) -> int:
    return endings.run(
        "finetune",
        args.out,
        lambda: plmcore.finetune(
            args.model,
            args.task,
            out=args.out,
            train=args.train,
            dev=args.dev,
            test=args.test,
            folder=args.data,
            unlabelled=args.unlabelled,
            also=args.also or None,
            columns=args.columns and args.columns.split(","),
            labels=args.labels and args.labels.split(","),
            epochs=args.epochs,
            steps=args.steps,
            lr=args.lr,
            batch=args.batch,
            lora=args.lora,
            save_every=args.save_every,
            seed=args.seed,
            device=args.device,
            errors=args.errors,
            config=args.config,
            changes=args.set,
            resume=args.resume,
        ),
    )
