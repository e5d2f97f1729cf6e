"""plmcore generate: one prompt to the terminal, or many, a line each, to JSON lines."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast

import plmcore
from plmcore import generate
from plmcore.cli import texts
from plmcore.cli.arguments import Help, add_device, add_errors
from plmcore.files.text import lines_of
from plmcore.files.whole import check_replaceable, open_own, sync_folder

ANSWERED = (ValueError, TypeError)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "generate",
        help="generate text from prompts",
        description="Generates text. --prompt prints the text while it is generated. --prompts reads a "
        "prompt from each line of a file and writes a JSON line for each, in the same order, "
        "with text, score and number of tokens. A blank line gives an empty text. Memory does "
        "not grow with the number of prompts. The file of --out is named FILE.partial until "
        "it is complete.",
        epilog="examples:\n  plmcore generate gpt2-dir --prompt 'Once upon' --max-new-tokens 40\n"
        "  plmcore generate bart-dir --prompts articles.txt --beams 4 --out summaries.jsonl\n"
        "  plmcore generate gpt2-dir --prompt 'Once upon' --beams 4 --trace beams.html\n"
        "  cat questions | plmcore generate t5-dir --prompts - --sample --top-p 0.9 --seed 7",
        formatter_class=Help,
    )
    parser.add_argument(
        "folder", type=pathlib.Path, metavar="DIR", help="a model directory with tokenizer files"
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--prompt", metavar="TEXT", help="the text to continue, or to answer")
    what.add_argument(
        "--prompts", metavar="FILE", help="a file with a prompt on each line, - for standard input"
    )
    parser.add_argument(
        "--out", type=pathlib.Path, metavar="FILE", help="the file for JSON lines (default: standard output)"
    )
    parser.add_argument(
        "--trace",
        type=pathlib.Path,
        metavar="FILE.html",
        help="with --prompt: write a page that shows the search step by step",
    )
    parser.add_argument(
        "--max-new-tokens",
        type=int,
        default=40,
        metavar="N",
        help="largest number of new tokens (default: %(default)s)",
    )
    parser.add_argument("--min-new-tokens", type=int, metavar="N", help="smallest number of new tokens")
    parser.add_argument("--beams", type=int, metavar="K", help="number of beams (default: 1, greedy)")
    parser.add_argument(
        "--returns",
        type=int,
        default=1,
        metavar="R",
        help="number of texts for each prompt (default: %(default)s)",
    )
    parser.add_argument(
        "--length-penalty",
        type=float,
        metavar="A",
        help="beam search: the score is log-probability / length^A",
    )
    parser.add_argument(
        "--no-repeat-ngram", type=int, metavar="N", help="never repeat a sequence of N tokens"
    )
    parser.add_argument(
        "--repetition-penalty",
        type=float,
        metavar="P",
        help="a value above 1 makes earlier tokens less likely",
    )
    parser.add_argument("--sample", action="store_true", help="sample tokens; the default takes the best one")
    parser.add_argument("--temperature", type=float, metavar="T", help="sampling: temperature (default: 1)")
    parser.add_argument(
        "--top-k",
        type=int,
        metavar="K",
        help="sampling: draw from the K best tokens (default: 50; 0 for all)",
    )
    parser.add_argument(
        "--top-p",
        type=float,
        metavar="P",
        help="sampling: draw from the fewest tokens with this share of the probability",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="S",
        help="sampling: seed; line i uses S + i (default: %(default)s)",
    )
    parser.add_argument(
        "--stop", action="append", metavar="TEXT", help="end a text at this string; may be repeated"
    )
    add_errors(parser)
    add_device(parser)
    parser.add_argument(
        "--batch",
        type=int,
        default=8,
        metavar="B",
        help="number of prompts in a batch (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    lm = plmcore.load(args.folder, device=args.device)
    if lm.tokenizer is None:
        raise plmcore.ArgumentError(f"'{args.folder}' has no tokenizer files")
    options = options_of(args)
    if args.prompt is not None:
        args.prompt = texts.argument(args.prompt, args.errors)
        one(lm, args, options, sys.stdout)
    elif args.trace is not None:
        raise plmcore.ArgumentError("--trace is for one --prompt")
    else:
        many(lm, args, options)
    return 0


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    options = {
        "max_new_tokens": args.max_new_tokens,
        "min_new_tokens": args.min_new_tokens,
        "repetition_penalty": args.repetition_penalty,
        "num_beams": args.beams,
        "num_return_sequences": args.returns,
        "length_penalty": args.length_penalty,
        "no_repeat_ngram_size": args.no_repeat_ngram,
        "do_sample": args.sample or None,
        "temperature": args.temperature,
        "top_k": args.top_k,
        "top_p": args.top_p,
        "seed": args.seed,
        "stop_strings": args.stop,
    }
    return {name: value for name, value in options.items() if value is not None}


def one(lm: Any, args: argparse.Namespace, options: dict[str, Any], out: TextIO) -> None:
    begun = generate.begin(lm, args.prompt, **options | {"trace": args.trace is not None})
    if args.trace is not None or begun.settings.num_beams > 1 or begun.settings.num_return_sequences > 1:
        found = begun.finish()
        out.write("\n".join(found.texts or []) + "\n")
        if args.trace is not None:
            found.html(args.trace, f"{args.folder.resolve().name}: {args.prompt}")
        return
    if lm.head == "causal-lm":
        out.write(args.prompt)
    for piece in generate.pieces(begun):
        out.write(piece)
        out.flush()
    out.write("\n")


def many(lm: Any, args: argparse.Namespace, options: dict[str, Any]) -> None:
    from plmcore.runtime.progress import Progress

    with contextlib.ExitStack() as stack:
        f = stack.enter_context(texts.source(args.prompts))
        total = None
        if args.prompts != texts.STANDARD_INPUT and f.seekable():
            total = sum(1 for _ in f)
            f.seek(0)
        progress = stack.enter_context(Progress(total, "prompt"))
        out = stack.enter_context(growing(args.out)) if args.out else sys.stdout
        done = 0
        prompts = (line for _, line in lines_of(f, args.errors, texts.name_of(args.prompts)))
        for batch in texts.grouped(prompts, args.batch):
            out.writelines(
                json.dumps(record, ensure_ascii=False) + "\n" for record in records(lm, batch, done, options)
            )
            out.flush()
            done += len(batch)
            progress.reach(done)


@contextlib.contextmanager
def growing(path: pathlib.Path) -> Iterator[TextIO]:
    """A file that can be read while it grows and takes its name when it is complete: hours of work are not
    lost to an error in the last line.
    """
    partial = path.with_name(path.name + ".partial")
    check_replaceable(path)
    with open_own(partial, "w", encoding="utf-8") as out:
        yield cast(TextIO, out)
        out.flush()
        os.fsync(out.fileno())
    check_replaceable(path)
    os.replace(partial, path)
    sync_folder(path.parent)


def records(lm: Any, prompts: list[str], first: int, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One for each text of each prompt; the answer to a blank line is empty."""
    asked = [i for i, prompt in enumerate(prompts) if prompt.strip()]
    seeds = [options["seed"] + first + i for i in asked]
    R = options["num_return_sequences"]
    answers: dict[int, list[dict[str, Any]]] = {}
    if asked:
        try:
            found = lm.generate(
                [prompts[i] for i in asked], **options | {"seed": seeds, "output_scores": True}
            )
        except plmcore.ArgumentError as e:
            raise plmcore.ArgumentError(f"lines {first + 1} to {first + len(prompts)}: {e}") from None
        for k, (text, score, tokens) in enumerate(zip(found.texts, found.scores, found.token_scores)):
            answers.setdefault(asked[k // R], []).append(
                {"text": text, "score": float(score), "tokens": len(tokens)}
            )
    blank: list[dict[str, Any]] = [{"text": "", "score": 0.0, "tokens": 0}] * R
    for i, prompt in enumerate(prompts):
        for answer in answers.get(i, blank):
            yield {"prompt": prompt, **answer}
