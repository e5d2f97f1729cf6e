"""plmcore annotate: words with their tags, and texts with their classes, of all tasks of a model."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

import plmcore
from plmcore.cli import texts
from plmcore.cli.arguments import Help, add_batch, add_device, add_errors, add_texts

BATCHES = 32  # that are read, and sorted by length, together
ANSWERED = (ValueError, TypeError)
EXAMPLES = """\
examples:
  plmcore annotate run/final "The cat sat on the mat ."
  plmcore annotate run/final sentences.txt > tagged.txt      a sentence on each line
  plmcore annotate run/final sentences.txt --json > tagged.jsonl
"""


def add_parser(commands: Any) -> None:
    command = commands.add_parser(
        "annotate",
        help="tag the words of texts with a fine-tuned model",
        description="Prints a word on each line with its tags, one column for each task of the model, and a "
        "blank line after each text. Classes of texts stand before their words: # TASK = CLASS. "
        "Words are what stands between white space. Blank lines of the input are left out. Memory does "
        "not grow with the number of texts.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    add = command.add_argument
    add("folder", type=pathlib.Path, metavar="DIR", help="the directory of a fine-tuned model")
    add_texts(command)
    add("--json", action="store_true", help='print an object for each text: {"words", TASK, ...}')
    add_batch(command)
    add_errors(command)
    add_device(command)


def run(args: argparse.Namespace) -> int:
    try:
        lm = plmcore.load(args.folder, device=args.device)
        for some in texts.grouped(texts.given(args.texts, args.errors, []), BATCHES * args.batch):
            for found in lm.annotate([text for text in some if text.strip()], batch_size=args.batch):
                print(json.dumps(found, ensure_ascii=False) if args.json else as_columns(found))
            sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        sys.stderr.close()
        return 0
    return 0


def as_columns(found: dict[str, Any]) -> str:
    words = found["words"]
    tags = [answer for name, answer in found.items() if name != "words" and isinstance(answer, list)]
    classes = [f"# {name} = {answer}" for name, answer in found.items() if isinstance(answer, str)]
    return "\n".join([*classes, *("\t".join(row) for row in zip(words, *tags, strict=True)), ""])
