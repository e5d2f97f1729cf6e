"""plmcore fill-mask: the tokens that a masked language model finds likeliest in the gaps of texts."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

import plmcore
from plmcore.cli import texts
from plmcore.cli.arguments import Help, add_device, add_errors, add_texts, positive

ANSWERED = (ValueError, TypeError)
EXAMPLES = """\
examples:
  plmcore fill-mask bert-dir "Paris is the [MASK] of France."
  plmcore fill-mask roberta-dir "Paris is the <mask> of <mask>." --k 3
  plmcore fill-mask bert-dir gaps.txt --json > filled.jsonl          a text on each line
  echo "Paris is the [MASK] of France." | plmcore fill-mask bert-dir --json
"""


def add_parser(commands: Any) -> None:
    command = commands.add_parser(
        "fill-mask",
        help="predict the masked tokens of texts",
        description="Prints the most likely tokens for each mask of each text, with their probabilities "
        "and the completed text. The mask is the tokenizer's own: [MASK] for BERT, "
        "<mask> for RoBERTa. A blank line gets an empty answer.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    add = command.add_argument
    add("folder", type=pathlib.Path, metavar="DIR", help="the directory of a masked language model")
    add_texts(command)
    add(
        "--k",
        type=positive,
        default=5,
        metavar="K",
        help="number of tokens for each mask (default: %(default)s)",
    )
    add("--field", metavar="NAME", help="read each line as a JSON object, and take its text from this field")
    add("--json", action="store_true", help="print a JSON object for each text, with a list for each mask")
    add_errors(command)
    add_device(command)


def run(args: argparse.Namespace) -> int:
    try:
        lm = plmcore.load(args.folder, device=args.device)
        given = texts.given(args.texts, args.errors, [] if args.field is None else [args.field])
        for text in (text if args.field is None else text[0] for text in given):
            masks = filled(lm, text, args.k)
            print(
                json.dumps({"text": text, "masks": masks}, ensure_ascii=False) if args.json else shown(masks)
            )
            sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        sys.stderr.close()
        return 0
    return 0


def filled(lm: plmcore.LanguageModel, text: str, k: int) -> list[list[dict[str, Any]]]:
    """The answers for each mask."""
    if not text.strip():
        return []
    found: Any = lm.fill_mask(text, k)
    return found if isinstance(found[0], list) else [found]


def shown(masks: list[list[dict[str, Any]]]) -> str:
    lines = [[f"{a['probability']:.4f}\t{a['token']}\t{a['text']}" for a in answers] for answers in masks]
    return "\n\n".join("\n".join(answers) for answers in lines)
