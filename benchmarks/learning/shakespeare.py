"""nanoGPT's setting for one processor on the characters of Tiny Shakespeare, with random windows and the last
tenth held out.

Its validation loss is 1.88.
"""

from __future__ import annotations

import pathlib

import plmcore as plm
from plmcore.train import run_directory

CHANGES = [
    "data.held_out=0.1",
    "objective.stride=1",
    "train.evaluate_batches=200",
    "train.evaluate_every=500",
]


def run(data: pathlib.Path, folder: pathlib.Path, seed: int) -> dict[str, float]:
    text, out = data / "tinyshakespeare" / "input.txt", folder / f"run-{seed}"
    plm.pretrain(
        "gpt2",
        text=[text],
        out=out,
        size="tiny",
        tokenizer="characters",
        steps=2000,
        seed=seed,
        changes=CHANGES,
        resume=True,
        quiet=True,
    )
    losses = [
        m["eval_loss"] for m in run_directory.read_metrics(out / run_directory.METRICS) if "eval_loss" in m
    ]
    return {"validation loss": round(losses[-1], 4)}
