"""The cases: a model at its published size, the batches of a step, and the target the project has set itself.

Needs numpy only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

LR, DECAY, CLIP = 1e-4, 0.01, 1.0
WORDS, LINES = 3000, 6000  # of the text: different words, and lines
OVERHEAD, BLOCKED = 0.01, 2.0  # limits: share of a step, seconds


@dataclass(frozen=True)
class Case:
    """A step takes `batch` rows of `length` tokens. `layers` is the key that --layers changes."""

    name: str
    family: str
    architecture: str
    vocab: int
    batch: int
    length: int
    layers: str
    target: float
    settings: tuple[str, ...] = ()


CASES = {
    case.name: case
    for case in (
        Case(
            "BERT-base, masked LM, 8 x 128",
            "bert",
            "BertForMaskedLM",
            30_522,
            8,
            128,
            "num_hidden_layers",
            1.4,
            ("objective.name=masked-lm", "model.head=masked-lm", "model.max_position_embeddings=512"),
        ),
        Case(
            "GPT-2 124M, 4 x 256",
            "gpt2",
            "GPT2LMHeadModel",
            50_257,
            4,
            256,
            "n_layer",
            1.3,
            ("model.n_positions=1024",),
        ),
    )
}


def small(case: Case) -> Case:
    """Of a quick look: one short row."""
    return replace(case, batch=1, length=32)


def write_text(path: Path, seed: int = 0) -> None:
    """Lines of made-up words, the common ones often. Both libraries train on its tokens."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = np.array(["".join(rng.choice(letters, n)) for n in rng.integers(2, 9, WORDS)])
    weights = 1 / np.arange(1, WORDS + 1)
    with open(path, "w", encoding="utf-8") as f:
        for _ in range(LINES):
            line = " ".join(rng.choice(words, rng.integers(20, 60), p=weights / weights.sum()))
            f.write(line + " .\n\n")
