"""plmcore generate: one prompt to the terminal, or many, a line each, to JSON lines."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import plmcore
from plmcore.cli.progress import Progress


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "generate",
        help="write the text that follows a prompt",
        description="One --prompt: the text appears as it is made. --prompts: one prompt per line of a file, or - for standard input; each becomes one line of JSON "
        "with its text, score and number of tokens, in the same order. Memory does not grow with the number of prompts.",
        epilog="examples:\n  python -m plmcore generate gpt2-dir --prompt 'Once upon' --max-new-tokens 40\n"
        "  python -m plmcore generate bart-dir --prompts articles.txt --beams 4 --out summaries.jsonl\n"
        "  cat questions | python -m plmcore generate t5-dir --prompts - --sample --top-p 0.9 --seed 7",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR", help="a model directory with tokenizer files")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--prompt", metavar="TEXT", help="what to continue, or to answer")
    what.add_argument("--prompts", metavar="FILE", help="a file with a prompt per line, - for standard input")
    parser.add_argument(
        "--out", type=pathlib.Path, metavar="FILE", help="where JSON lines go (default: standard output)"
    )
    parser.add_argument("--max-new-tokens", type=int, default=40, metavar="N", help="default: %(default)s")
    parser.add_argument("--beams", type=int, metavar="K", help="beam search of this width")
    parser.add_argument(
        "--returns", type=int, default=1, metavar="R", help="texts for each prompt (default: %(default)s)"
    )
    parser.add_argument("--length-penalty", type=float, metavar="A", help="of beams: log-probability / length^A")
    parser.add_argument("--no-repeat-ngram", type=int, metavar="N", help="no N tokens in a row occur twice")
    parser.add_argument("--sample", action="store_true", help="draw tokens instead of taking the best")
    parser.add_argument("--temperature", type=float, metavar="T", help="of sampling")
    parser.add_argument("--top-k", type=int, metavar="K", help="draw from the K best (default: 50; 0: all)")
    parser.add_argument("--top-p", type=float, metavar="P", help="draw from the fewest with this share")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="line i draws from the stream S + i (default: %(default)s)"
    )
    parser.add_argument("--stop", action="append", metavar="TEXT", help="ends a text that contains it; may be repeated")
    parser.add_argument(
        "--batch", type=int, default=8, metavar="B", help="prompts that run together (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    try:
        lm = plmcore.load(args.folder)
        if lm.tokenizer is None:
            raise plmcore.ArgumentError(f"'{args.folder}' has no tokenizer files")
        options = options_of(args)
        if args.prompt is not None:
            one(lm, args.prompt, options, sys.stdout)
        else:
            many(lm, args, options)
    except (ValueError, TypeError, OSError) as e:
        print(f"plmcore generate: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    return 0


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    options = {
        "max_new_tokens": args.max_new_tokens, "num_beams": args.beams, "num_return_sequences": args.returns, "length_penalty": args.length_penalty,
        "no_repeat_ngram_size": args.no_repeat_ngram, "do_sample": args.sample or None, "temperature": args.temperature, "top_k": args.top_k,
        "top_p": args.top_p, "seed": args.seed, "stop_strings": args.stop,
    }  # fmt: skip
    return {name: value for name, value in options.items() if value is not None}


def one(lm, prompt: str, options: dict[str, Any], out: TextIO) -> None:
    if options.get("num_beams", 1) > 1 or options["num_return_sequences"] > 1:
        texts = lm.generate(prompt, **options)
        out.write("\n".join([texts] if isinstance(texts, str) else texts) + "\n")
        return
    if lm.head == "causal-lm":
        out.write(prompt)
    for piece in lm.stream(prompt, **options):
        out.write(piece)
        out.flush()
    out.write("\n")


def many(lm, args: argparse.Namespace, options: dict[str, Any]) -> None:
    with contextlib.ExitStack() as stack:
        lines: TextIO = sys.stdin
        total = None
        if args.prompts != "-":
            with open(args.prompts, encoding="utf-8") as counted:
                total = sum(1 for _ in counted)
            lines = stack.enter_context(open(args.prompts, encoding="utf-8"))
        out = stack.enter_context(open(args.out, "w", encoding="utf-8")) if args.out else sys.stdout
        progress = Progress(total, "prompt") if total else None
        done = 0
        for batch in batches(lines, args.batch):
            out.writelines(
                json.dumps(record, ensure_ascii=False) + "\n" for record in records(lm, batch, done, options)
            )
            out.flush()
            done += len(batch)
            if progress is not None:
                progress.update(done)
        if progress is not None:
            progress.clear()


def batches(lines: TextIO, size: int) -> Iterator[list[str]]:
    if size < 1:
        raise plmcore.ArgumentError(f"--batch must be at least 1, got {size}")
    stripped = (line.rstrip("\r\n") for line in lines)
    while batch := list(itertools.islice(stripped, size)):
        yield batch


def records(lm, prompts: list[str], first: int, options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    seeds = [options["seed"] + first + i for i in range(len(prompts))]
    try:
        found = lm.generate(prompts, **options | {"seed": seeds, "output_scores": True})
    except plmcore.ArgumentError as e:
        raise plmcore.ArgumentError(f"lines {first + 1} to {first + len(prompts)}: {e}") from None
    R = options["num_return_sequences"]
    for i, (text, score, tokens) in enumerate(zip(found.texts, found.scores, found.token_scores)):
        yield {"prompt": prompts[i // R], "text": text, "score": float(score), "tokens": len(tokens)}
