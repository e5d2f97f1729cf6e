"""Transformer-XL on the characters of Tiny Shakespeare, segments of 64, with memory and without; the last
tenth is held out and read once from its begin to its end.
"""

from __future__ import annotations

import pathlib

import plmcore as plm
from plmcore.train import run_directory

SEGMENT, STEPS, LR = 64, 900, 2e-3
TRAINED = {"with memory": 128, "without": 0}  # tokens remembered in training
LONG, SHORT = 256, 64  # and in evaluation
STREAMS = 16


def split(data: pathlib.Path, folder: pathlib.Path) -> list[pathlib.Path]:
    """Files to learn from and to be tested on."""
    text = (data / "tinyshakespeare" / "input.txt").read_text()
    cut = len(text) * 9 // 10
    paths = [folder / name for name in ("train.txt", "valid.txt")]
    for path, part in zip(paths, (text[:cut], text[cut:]), strict=True):
        path.write_text(part)
    return paths


def trained(text: pathlib.Path, folder: pathlib.Path, kind: str, seed: int, steps: int) -> pathlib.Path:
    out = folder / f"{kind}-{seed}".replace(" ", "-")
    plm.pretrain(
        "transfo-xl",
        text=[text],
        out=out,
        size="tiny",
        tokenizer="characters",
        steps=steps,
        lr=LR,
        seed=seed,
        changes=[
            f"data.length={SEGMENT + 1}",  # the last token of a segment is the first of the next
            f"train.mem_len={TRAINED[kind]}",
            f"data.batch={STREAMS}",
            f"objective.streams={STREAMS}",  # both read the text in the same order
            f"objective.stride={SEGMENT}",
            f"schedule.warmup={steps // 20}",
            "model.n_layer=3",
            "model.dropout=0.0",
            "model.init_std=0.08",  # the published 0.02 is for wider models
            "optim.clip_norm=1.0",
            "data.held_out=0",
        ],
        resume=True,
        quiet=True,
    )
    return out / run_directory.FINAL


def run(
    data: pathlib.Path, folder: pathlib.Path, seed: int, steps: int = STEPS, characters: int | None = None
) -> dict[str, float]:
    """Bits per character of the held-out text, or of its first `characters`. Without memory segments follow
    one another, as in training, or slide by half of their length: "sliding".
    """
    text, held_out = split(data, folder)
    if characters is not None:
        held_out.write_text(held_out.read_text()[:characters])
    remembers, forgets = (trained(text, folder, kind, seed, steps) for kind in TRAINED)
    scores = {
        f"memory {mem_len}": plm.load(remembers, mem_len=mem_len).perplexity(held_out, window=SEGMENT)
        for mem_len in (LONG, SHORT)
    }
    lm = plm.load(forgets)
    scores["without"] = lm.perplexity(held_out, window=SEGMENT, stride=SEGMENT)
    scores["sliding"] = lm.perplexity(held_out, window=SEGMENT)
    return {name: round(score.bits_per_character, 4) for name, score in scores.items()}
