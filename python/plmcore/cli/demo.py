"""plmcore demo: a tokenizer and a small GPT-2 from the reference manual inside Python."""

from __future__ import annotations

import argparse
import pathlib
import re
import shlex
import tempfile

import plmcore
from plmcore.cli import endings
from plmcore.cli.arguments import Help, positive
from plmcore.files.whole import atomic_write

TEXT = "manual.txt"
# Between tiny and mini: two minutes on two cores. The text is read some twelve times; without dropout it
# would be learnt by heart.
SETTINGS = (
    "data.vocab=1024",
    "data.held_out=0.1",
    "data.batch=16",
    "data.length=128",
    "objective.stride=1",
    "optim.lr=3e-3",
    "model.n_positions=128",
    "model.resid_pdrop=0.2",
    "model.embd_pdrop=0.2",
    "model.attn_pdrop=0.1",
)


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "demo",
        help="train a small GPT-2 in about two minutes, with nothing to download",
        description="Trains a byte-level BPE tokenizer and a small GPT-2 on the reference manual inside "
        "Python (pydoc_data.topics). Downloads nothing. Writes a run directory DIR: DIR/final "
        "is a model directory that plm.load and transformers open, "
        "DIR/report.html and DIR/loss.svg have the curves.",
        epilog="example:\n  plmcore demo --out demo-run",
        formatter_class=Help,
    )
    command.add_argument(
        "--steps", type=positive, default=700, metavar="N", help="number of steps (default: %(default)s)"
    )
    command.add_argument(
        "--out",
        type=pathlib.Path,
        metavar="DIR",
        help="the run directory to write (default: a new temporary directory)",
    )
    command.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="S",
        help="seed of weights, batches and the sample (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    out = args.out or pathlib.Path(tempfile.mkdtemp(prefix="plmcore-demo-"))
    return endings.run("demo", out, lambda: demo(out, args.steps, args.seed), resume="pretrain")


def demo(out: pathlib.Path, steps: int, seed: int) -> plmcore.LanguageModel:
    """Trains, and prints how the model goes on from text it has not seen."""
    from plmcore.train import run_directory, samples
    from plmcore.train.pretraining import pretrain

    if out.is_dir() and any(out.iterdir()):
        raise FileExistsError(f"'{out}' is not empty")
    text = manual()
    with atomic_write(out / TEXT) as f:
        f.write(text.encode())
    print(f"{len(text):,} characters of the Python manual")
    changes = [*SETTINGS, f"train.evaluate_every={-(-steps // 8)}"]
    lm = pretrain(
        "gpt2", text=[out / TEXT], out=out, size="tiny", steps=steps, seed=seed, changes=changes, resume=True
    )
    lines = run_directory.read_metrics(out / run_directory.METRICS)
    perplexities = [m["eval_perplexity"] for m in lines if "eval_perplexity" in m]
    sample = [m["sample"] for m in lines if "sample" in m][-1]
    print(f"held-out perplexity: {' '.join(f'{p:.0f}' for p in perplexities)}")
    print(f"sample, continued from {samples.PROMPT} held-out tokens:\n\n{sample.strip()}\n")
    command = ["plmcore", "generate", str(out / run_directory.FINAL), "--prompt", "The statement", "--sample"]
    print(f"generate more: {shlex.join(command)}")
    return lm


def manual() -> str:
    """The prose of Python's help(), a paragraph to a line: code and grammar are left out.

    Paragraphs that several topics share stand there once, so that what is held out is new.
    """
    from pydoc_data.topics import topics

    paragraphs = (p for name in sorted(topics) for p in re.split(r"\n\n+", topics[name].strip("\n")))
    lines = (" ".join(p.split()) for p in paragraphs)
    return "\n\n".join(dict.fromkeys(line for line in lines if is_prose(line)))


def is_prose(line: str) -> bool:
    """Whole sentences, mostly of letters."""
    letters = sum(c.isalpha() or c.isspace() for c in line)
    return (
        len(line) > 60
        and line[0].isupper()
        and line[-1] in ".:"
        and ">>>" not in line
        and letters > 0.85 * len(line)
    )
