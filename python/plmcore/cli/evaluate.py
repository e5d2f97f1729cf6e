"""plmcore evaluate: the scores of a model directory on files."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Mapping
from typing import Any

from plmcore.cli.arguments import Help, add_device, add_errors

# What each task of plmcore.evaluate.running takes from the command line.
OPTIONS = {
    "perplexity": ("window", "stride", "start", "source", "batch_tokens", "errors"),
    "last-word": ("start", "batch_tokens", "errors"),
    "lambada": ("start", "batch_tokens", "errors"),
    "choices": ("start", "batch_tokens", "normalise", "errors"),
    "few-shot": (
        "errors",
        "shots",
        "k",
        "template",
        "instruction",
        "normalise",
        "max_new_tokens",
        "num_beams",
        "seed",
    ),
    "analogies": ("restrict",),
    "similarity": (),
}
# what those take that models are fine-tuned for
TUNED = ("columns", "changes", "predictions", "split", "errors", "others")
PUBLISHED = (*TUNED, *OPTIONS["few-shot"])  # a published task is also put to a model that was not
ANSWERED = (ValueError, TypeError)
EXAMPLES = """\
examples:
  plmcore evaluate gpt2-dir wiki.test.raw --stride 512       perplexity per token, word, byte and character
  plmcore evaluate t5-dir test.de --source test.en           perplexity of each line, given its source
  plmcore evaluate gpt2-dir lambada.jsonl --task lambada     accuracy of the last word, {"text"} lines or .txt
  plmcore evaluate gpt2-dir swag.jsonl --task choices        accuracy, {"context", "choices", "label"} lines
  plmcore evaluate gpt2-dir test.jsonl --task few-shot --shots train.jsonl --k 4 --template "{question}\\n"
                                                             answers after four solved examples
  plmcore evaluate run/final test.tsv                        a fine-tuned model on another file
  plmcore evaluate fwd/final test.tsv --with bwd/final       the mean of two models' predictions
  plmcore evaluate vectors.bin questions-words.txt --task analogies
                                                             word vectors: also --task similarity
  plmcore evaluate gpt2-dir SWAG/val.csv --task swag         a published task, without fine-tuning
"""


def add_parser(commands: Any) -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="score a model on files",
        description="Prints the scores of a model on files: the perplexity of texts, the accuracy of "
        "choices by probability, or the metrics of a fine-tuned model. Nothing is trained.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    add = evaluate.add_argument
    add(
        "folder",
        type=pathlib.Path,
        metavar="DIR",
        help="a model directory with tokenizer files, or word vectors",
    )
    add(
        "files",
        type=pathlib.Path,
        nargs="+",
        metavar="FILE",
        help="UTF-8 texts, files of JSON lines, files as for finetune, or the folder of a published task",
    )
    add(
        "--task",
        metavar="TASK",
        help=f"{', '.join(OPTIONS)}; or what the model was fine-tuned for: classification, "
        "pair, regression, multiple-choice, tagging, qa, seq2seq, sst2, ... (default: "
        "what the model was fine-tuned for, else perplexity)",
    )
    add(
        "--split",
        metavar="NAME",
        help="of a published task's folder: dev, test, ... (default: test if it has labels, else dev)",
    )
    add(
        "--window",
        type=int,
        metavar="N",
        help="tokens in a window (default: the number of positions of the model)",
    )
    add(
        "--stride",
        type=int,
        metavar="N",
        help="tokens between the starts of two windows (default: half a window)",
    )
    add(
        "--start",
        type=int,
        metavar="ID",
        help="put this token before every text, so that the first token is scored too",
    )
    add(
        "--source",
        type=pathlib.Path,
        metavar="FILE",
        help="the sources of the lines of FILE, for models with an encoder",
    )
    add("--batch-tokens", type=int, metavar="N", help="tokens in a batch (default: 4096)")
    add(
        "--normalise",
        metavar="HOW",
        help="choices, few-shot: sum, tokens, characters, bytes or context (default: sum)",
    )
    add(
        "--shots",
        type=pathlib.Path,
        metavar="FILE",
        help="few-shot: solved examples, a JSON object on each line",
    )
    add("--k", type=int, metavar="K", help="few-shot: number of solved examples before each record")
    add(
        "--template",
        type=unescaped,
        metavar="TEXT",
        help=r"few-shot: text of a record, e.g. 'Q: {question}\nA:'; {...} are fields of the record, \n "
        r"starts a line",
    )
    add("--instruction", type=unescaped, metavar="TEXT", help="few-shot: a text before the examples")
    add(
        "--max-new-tokens",
        type=int,
        metavar="N",
        help="few-shot: largest number of tokens of an answer (default: 16)",
    )
    add(
        "--beams",
        dest="num_beams",
        type=int,
        metavar="N",
        help="few-shot: number of beams (default: 1, greedy)",
    )
    add("--seed", type=int, metavar="S", help="few-shot: seed of the drawn examples (default: 0)")
    add(
        "--columns",
        type=lambda text: text.split(","),
        metavar="A,B,C",
        help="fine-tuned models: columns of the table, as for finetune",
    )
    add(
        "--set",
        action="append",
        dest="changes",
        metavar="A.B=C",
        help="fine-tuned models: change one setting of finetune; may be repeated",
    )
    add(
        "--predictions",
        type=pathlib.Path,
        metavar="FILE",
        help="fine-tuned models: write the predictions to this file, as JSON lines",
    )
    add(
        "--with",
        dest="others",
        type=pathlib.Path,
        action="append",
        metavar="DIR",
        help="fine-tuned classifiers: average with the predictions of this model; may be repeated",
    )
    add("--restrict", type=int, metavar="N", help="analogies: look at the first N words (default: 30000)")
    add_errors(evaluate, default=None)
    add_device(evaluate)
    add("--json", action="store_true", help="print the scores as one JSON object")


def unescaped(text: str) -> str:
    """Line breaks and tabs may be written as \\n and \\t, which a shell makes hard to type."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def run(args: argparse.Namespace) -> int:
    from plmcore.evaluate import running
    from plmcore.language_model import directory, load
    from plmcore.runtime.progress import Progress

    given = {name: getattr(args, name) for name in sorted({*TUNED}.union(*OPTIONS.values()))}
    options = {name: value for name, value in given.items() if value is not None}
    task = args.task or running.trained_for(directory.read_config(args.folder))
    known = OPTIONS.get(task, PUBLISHED if running.is_published(task) else TUNED)
    for name in options:
        if name not in known:
            option = {"changes": "set", "others": "with"}.get(name, name.replace("_", "-"))
            print(f"plmcore evaluate: --{option} means nothing to {task}", file=sys.stderr)
            return 2
    total = 0
    if task == "perplexity":
        # An estimate.
        total = sum(f.stat().st_size * (3 if f.suffix == ".gz" else 1) for f in args.files if f.is_file())
    with Progress(total, "B", quiet=task != "perplexity") as bar:
        if task == "perplexity":
            options["progress"] = lambda done: bar.reach(min(done, total))
        model = args.folder if args.device is None else load(args.folder, device=args.device)
        if "others" in options:
            options["others"] = [load(folder, device=args.device) for folder in options["others"]]
        scores = running.evaluate(model, args.files, task, **options)
    show_scores(scores, args.json)
    return 0


def show_scores(scores: Mapping[str, Any], as_json: bool) -> None:
    print(
        json.dumps(scores) if as_json else "\n".join(f"{name:<19} {shown(x)}" for name, x in scores.items())
    )


def shown(value: float | int | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.4f}" if isinstance(value, float) else f"{value:,}"
