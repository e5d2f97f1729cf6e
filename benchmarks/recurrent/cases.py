"""The cases: a language model, the batches of a step, and the targets. Needs numpy only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

RATE, DECAY, CLIP = 1.0, 1.2e-6, 0.25
TARGET, MEMORY = 1.2, 1.0  # of speed at least, of memory at most


@dataclass(frozen=True)
class Case:
    """A step reads `batch` rows of `length` tokens, with the state of the step before, and learns by SGD."""

    name: str
    vocab: int
    batch: int
    length: int
    config: dict[str, Any] = field(hash=False)
    penalties: tuple[float, float] = (0.0, 0.0)


CASES = {
    case.name: case
    for case in (
        Case(
            "LSTM, 2 x 1024, 32 x 64, 10,000 words",
            10_000,
            32,
            64,
            dict(d_embed=1024, d_hidden=1024, n_layers=2, drop_mult=0.0, tie_word_embeddings=False),
        ),
        Case("AWD-LSTM, 400 and 3 x 1152, 32 x 70, 10,000 words", 10_000, 32, 70, {}, (2.0, 1.0)),
    )
}


def small(case: Case) -> Case:
    """To try the benchmark itself."""
    return replace(case, batch=2, length=5, vocab=100)


def batch(case: Case, number: int) -> np.ndarray:
    """The ids of a step; the last of a row is predicted alone."""
    return np.random.default_rng(number).integers(0, case.vocab, (case.batch, case.length + 1))
