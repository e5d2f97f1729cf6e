"""plmcore evaluate: the scores of a model directory on files."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

from plmcore.cli.arguments import add_errors
from plmcore.cli.progress import Progress

# What each task of plmcore.evaluate.running takes from the command line.
OPTIONS = {
    "perplexity": ("window", "stride", "start", "source", "batch_tokens", "errors"),
    "last-word": ("start", "batch_tokens", "errors"),
    "lambada": ("start", "batch_tokens", "errors"),
    "choices": ("start", "batch_tokens", "normalise", "errors"),
    "few-shot": ("errors", "shots", "k", "template", "instruction", "normalise", "max_new_tokens", "num_beams", "seed"),
}
TUNED = ("columns", "changes", "predictions", "errors")  # what those take that models are fine-tuned for
EXAMPLES = """\
examples:
  python -m plmcore evaluate gpt2-dir wiki.test.raw --stride 512       perplexity per token, word, byte and character
  python -m plmcore evaluate t5-dir test.de --source test.en           perplexity of each line given its source
  python -m plmcore evaluate gpt2-dir lambada.jsonl --task lambada     accuracy of the last word, from {"text": ...} lines or a .txt file
  python -m plmcore evaluate gpt2-dir swag.jsonl --task choices        accuracy, from {"context", "choices", "label"} lines
  python -m plmcore evaluate gpt2-dir test.jsonl --task few-shot --shots train.jsonl --k 4 --template "Q: {question}\\nA:"
                                                                       answers that are written, or chosen, after four solved examples
  python -m plmcore evaluate run/final test.tsv --task classification  a fine-tuned model on another file
"""


def add_parser(commands: Any) -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="score a language model on files",
        description="Perplexity of text files, the accuracy of a model that chooses by probability, or the scores of a fine-tuned model. Nothing is trained.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = evaluate.add_argument
    add("folder", type=pathlib.Path, metavar="DIR", help="a model directory with tokenizer files")
    add(
        "files",
        type=pathlib.Path,
        nargs="+",
        metavar="FILE",
        help="UTF-8 text, one JSON object per line, or as for finetune",
    )
    add(
        "--task",
        default="perplexity",
        metavar="TASK",
        help=f"{', '.join(OPTIONS)}; or what the model was fine-tuned for: classification, pair, regression, multiple-choice, tagging, qa, seq2seq, "
        "sst2, ... (default: %(default)s)",
    )
    add("--window", type=int, metavar="N", help="tokens the model reads at once (default: as many as it has positions)")
    add("--stride", type=int, metavar="N", help="tokens the window moves on by (default: half a window)")
    add("--start", type=int, metavar="ID", help="a token to put before every text, so that its first one is scored too")
    add(
        "--source",
        type=pathlib.Path,
        metavar="FILE",
        help="what FILE was made of, line by line, for models with an encoder",
    )
    add("--batch-tokens", type=int, metavar="N", help="tokens that run together (default: 4096)")
    add("--normalise", metavar="HOW", help="of choices: sum, tokens, characters, bytes or context (default: sum)")
    add("--shots", type=pathlib.Path, metavar="FILE", help="of few-shot: solved examples, one JSON object per line")
    add("--k", type=int, metavar="K", help="of few-shot: how many of them stand before each record")
    add(
        "--template",
        type=unescaped,
        metavar="TEXT",
        help=r"of few-shot: 'Q: {question}\nA:'; {...} are fields of the records, \n begins a line",
    )
    add("--instruction", type=unescaped, metavar="TEXT", help="of few-shot: what stands before everything")
    add("--max-new-tokens", type=int, metavar="N", help="of few-shot: tokens of an answer at most (default: 16)")
    add(
        "--beams", dest="num_beams", type=int, metavar="N", help="of few-shot: beams for an answer (default: 1, greedy)"
    )
    add("--seed", type=int, metavar="S", help="of few-shot: which examples are drawn (default: 0)")
    add("--columns", type=lambda text: text.split(","), metavar="A,B,C", help="of fine-tuned models: as for finetune")
    add("--set", action="append", dest="changes", metavar="A.B=C", help="of fine-tuned models: a setting of finetune")
    add(
        "--predictions",
        type=pathlib.Path,
        metavar="FILE",
        help="of fine-tuned models: where predictions go, as JSON lines",
    )
    add_errors(evaluate, default=None)
    add("--json", action="store_true", help="print one JSON object")


def unescaped(text: str) -> str:
    """Line breaks and tabs may be written as \\n and \\t, which a shell makes hard to type."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


def run(args: argparse.Namespace) -> int:
    import plmcore
    from plmcore.evaluate import running

    given = {name: getattr(args, name) for name in sorted({*TUNED}.union(*OPTIONS.values()))}
    options = {name: value for name, value in given.items() if value is not None}
    for name in options:
        if name not in OPTIONS.get(args.task, TUNED):
            option = "set" if name == "changes" else name.replace("_", "-")
            print(f"plmcore evaluate: --{option} means nothing to {args.task}", file=sys.stderr)
            return 2
    bar = None
    if args.task == "perplexity":
        sizes = [f.stat().st_size * (3 if f.suffix == ".gz" else 1) for f in args.files if f.is_file()]  # about
        bar = Progress(sum(sizes), "byte")
        options["progress"] = lambda done: bar.update(min(done, bar.total))
    try:
        scores = running.evaluate(args.folder, args.files, args.task, **options)
    except (ValueError, TypeError, OSError, ImportError, plmcore.OutOfMemoryError) as e:
        print(f"plmcore evaluate: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    finally:
        if bar is not None:
            bar.clear()
    print(json.dumps(scores) if args.json else "\n".join(f"{name:<19} {shown(x)}" for name, x in scores.items()))
    return 0


def shown(value: float | int | str) -> str:
    return f"{value:,.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
