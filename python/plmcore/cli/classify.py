"""plmcore classify: the class, or the number, that a fine-tuned model gives each text."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import plmcore
from plmcore.cli import texts
from plmcore.cli.arguments import Help, add_batch, add_device, add_errors, add_texts

BATCHES = 32  # that are read, and sorted by length, together
ANSWERED = (ValueError, TypeError)
EXAMPLES = """\
examples:
  plmcore classify run/final "a lovely film" "a waste of time"
  plmcore classify run/final reviews.txt                   a text on each line
  plmcore classify run/final reviews.jsonl --field body --json > classes.jsonl
  plmcore classify run/final pairs.tsv --pairs             two texts on each line, separated by a tab
  plmcore classify fwd/final reviews.txt --with bwd/final  the mean of two models
  cat reviews.txt | plmcore classify run/final --json      lines of {"text", "label", "probability", ...}
"""


def add_parser(commands: Any) -> None:
    command = commands.add_parser(
        "classify",
        help="classify texts with a fine-tuned model",
        description="Prints a line for each text, in the order of the texts: the class, its probability "
        "and the text. A model that was trained on numbers prints the number and the text. "
        "A blank line gets an empty answer. Memory does not grow with the number of texts.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    add = command.add_argument
    add("folder", type=pathlib.Path, metavar="DIR", help="the directory of a fine-tuned model")
    add_texts(command)
    add(
        "--with",
        dest="others",
        type=pathlib.Path,
        action="append",
        default=[],
        metavar="DIR",
        help="average with the probabilities of this model; may be repeated",
    )
    add("--pairs", action="store_true", help="read two texts on each line, separated by a tab")
    add("--field", metavar="NAME", help="read each line as a JSON object, and take its text from this field")
    add("--pair-field", metavar="NAME", help="take the second text from this field")
    add(
        "--json",
        action="store_true",
        help="print a JSON object for each text, with the probabilities of all classes",
    )
    add_batch(command)
    add_errors(command)
    add_device(command)


def run(args: argparse.Namespace) -> int:
    try:
        if args.pair_field is not None and args.field is None:
            raise plmcore.ArgumentError("--pair-field needs --field, the name of the first text")
        lm = plmcore.load(args.folder, device=args.device)
        others = [plmcore.load(folder, device=args.device) for folder in args.others]
        for some in texts.grouped(rows(args), BATCHES * args.batch):
            for row, found in zip(some, answers(lm, some, args.batch, others), strict=True):
                print(as_json(row, found) if args.json else as_text(row, found))
            sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        sys.stderr.close()
        return 0
    return 0


Row = tuple[str, str | None]  # a text, and the second of a pair


def rows(args: argparse.Namespace) -> Iterator[Row]:
    fields = [name for name in (args.field, args.pair_field) if name is not None]
    for number, text in enumerate(texts.given(args.texts, args.errors, fields), 1):
        if isinstance(text, list):
            yield text[0], text[1] if len(text) > 1 else None
            continue
        first, tab, second = text.partition("\t")
        if args.pairs and not tab and text.strip():
            raise plmcore.FormatError(
                f"text {number}: --pairs needs two texts with a tab between them, got {text!r}"
            )
        yield (first, second) if args.pairs and tab else (text, None)


def answers(
    lm: plmcore.LanguageModel, some: list[Row], batch: int, others: Sequence[plmcore.LanguageModel] = ()
) -> list[dict[str, Any]]:
    """Of each row; nothing of a blank one."""
    asked = [row for row in some if row[0].strip()]
    pairs = [second or "" for _, second in asked] if any(second is not None for _, second in asked) else None
    found = iter(lm.classify([first for first, _ in asked], pairs, batch_size=batch, others=others))
    return [next(found) if row[0].strip() else {} for row in some]


def as_json(row: Row, found: dict[str, Any]) -> str:
    given = {"text": row[0]} | ({} if row[1] is None else {"pair": row[1]})
    return json.dumps({**given, **(found or {"label": None})}, ensure_ascii=False)


def as_text(row: Row, found: dict[str, Any]) -> str:
    text = "\t".join(part for part in row if part is not None)
    if not found:
        return ""
    answer = f"{found['value']:.4f}" if "value" in found else f"{found['label']}\t{found['probability']:.4f}"
    return f"{answer}\t{text}"
