"""GloVe: vectors whose products are the logarithms of counts. The native side: cpp/vectors."""

from __future__ import annotations

import hashlib
import os
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plmcore import _core
from plmcore._core import ArgumentError, FormatError, Tensor
from plmcore.runtime.kinds import checked
from plmcore.train.training import Parts, Training
from plmcore.vectors.corpus import Text
from plmcore.vectors.records import RECORD, Cooccurrences, cooccurrences, opened, shuffled
from plmcore.vectors.table import Vectors

RECORDS_PER_STEP = 4_000_000


class GloveTraining(Training):
    """A step is `records_per_step` records, in their order; epochs go through all of them.

    Rows have the vector, its accumulators (AdaGrad), the bias and its accumulator: cpp/vectors/kernels.h.
    """

    squares = True

    def __init__(
        self,
        records: np.ndarray,
        words: Sequence[str],
        *,
        counts: np.ndarray | None = None,
        dim: int = 50,
        x_max: float = 100.0,
        alpha: float = 0.75,
        lr: float = 0.05,
        epochs: int = 25,
        threads: int | None = None,
        init: np.ndarray | None = None,
        records_per_step: int = RECORDS_PER_STEP,
        **options: Any,
    ):
        if min(dim, epochs, records_per_step) < 1 or min(x_max, lr) <= 0:
            raise ArgumentError("glove: dim and epochs must be at least 1, x_max and lr above 0")
        if len(words) < 2 or not len(records):
            raise ArgumentError(
                f"glove: there are {len(words)} words and {len(records)} records: nothing to learn"
            )
        self.records, self.words, self.counts, self.dim = records, words, counts, dim
        self.x_max, self.alpha, self.lr = x_max, alpha, lr
        self.threads = _core.num_threads() if threads is None else threads
        self.each, self.epochs = records_per_step, epochs
        self.pieces = -(-len(records) // self.each)  # of a pass
        digest = hashlib.sha256(f"{len(records)} {len(words)}".encode())
        digest.update(np.ascontiguousarray(records[: 1 << 16]).tobytes())
        super().__init__(data=digest.hexdigest(), steps=epochs * self.pieces, **options)
        first = self._first(init, self.seed)
        self.width = -(-dim // 8) * 8
        self.rows = np.zeros((2, len(words), 2 * self.width + 8))
        self.rows[:, :, self.width : 2 * self.width] = self.rows[:, :, 2 * self.width + 1] = 1
        self.rows[:, :, :dim], self.rows[:, :, 2 * self.width] = first[:, :, :dim], first[:, :, dim]
        self.costs = np.zeros(epochs)

    def _first(self, init: np.ndarray | None, seed: int) -> np.ndarray:
        shape = (2, len(self.words), self.dim + 1)
        if init is None:
            return (np.random.default_rng(seed).random(shape) - 0.5) / self.dim
        first = np.asarray(init, np.float64)
        if first.shape != shape or not np.isfinite(first).all():
            raise ArgumentError(f"glove: init must be {list(shape)} and finite, got {list(first.shape)}")
        return first

    def compute(self) -> dict[str, float]:
        epoch, piece = divmod(self.step, self.pieces)
        part = np.ascontiguousarray(self.records[piece * self.each : (piece + 1) * self.each])
        numbers = part.view(np.int64).reshape(-1, 2)
        cost = _core.vectors.glove(
            self.rows, self.width, numbers, self.x_max, self.alpha, self.lr, self.threads
        )
        self.costs[epoch] += cost
        return {"loss": cost / len(part), "tokens": len(part)}

    def tensors(self) -> Parts:
        return {"weights": {"rows": self.rows}, "trainer": {"costs": self.costs}}

    def load(self, parts: Mapping[str, Mapping[str, Tensor]]) -> None:
        rows, costs = parts["weights"]["rows"].numpy(), parts["trainer"]["costs"].numpy()
        if rows.shape != self.rows.shape or costs.shape != self.costs.shape:
            raise ValueError(f"rows must be {list(self.rows.shape)}, got {list(rows.shape)}")
        self.rows[:], self.costs[:] = rows, costs

    @property
    def model(self) -> Vectors:
        """The sums of both vectors of each word, as they are now."""
        weights, biases = self.rows[:, :, : self.dim], self.rows[:, :, 2 * self.width, None]
        vectors = Vectors(self.words, weights.sum(0), self.counts)
        vectors.parameters = np.concatenate([weights, biases], -1)
        vectors.losses = [float(c) / len(self.records) for c in self.costs[: self.step // self.pieces]]
        return vectors


@checked
def glove(
    text: Text | None = None,
    *,
    records: str | os.PathLike[str] | np.ndarray | Cooccurrences | None = None,
    words: Sequence[str] | None = None,
    dim: int = 50,
    window: int = 15,
    x_max: float = 100.0,
    alpha: float = 0.75,
    lr: float = 0.05,
    epochs: int = 25,
    min_count: int = 5,
    threads: int | None = None,
    seed: int = 0,
    init: np.ndarray | None = None,
    shuffle: bool = True,
) -> Vectors:
    """Trains vectors on text files, or on records that cooccurrences wrote and their words.

    The result is the sum of the vectors of words and of contexts. init: the first parameters, float64
    [2, V, dim + 1]. shuffle=False takes the records in their order. With one thread a run repeats the
    Stanford program's.
    """
    if (text is None) == (records is None):
        raise ArgumentError("glove: either text or records must be given")
    with tempfile.TemporaryDirectory() as name:
        folder, counts = pathlib.Path(name), None
        if text is not None:
            records = cooccurrences(text, folder / "counted", min_count=min_count, window=window)
        if isinstance(records, Cooccurrences):
            words, counts = records.words, records.counts
            records = records.path
        if words is None or records is None:
            raise ArgumentError("glove: records need their words")
        found = records if isinstance(records, np.ndarray) else opened(records)
        if found.dtype != RECORD or found.ndim != 1:
            raise FormatError(f"glove: records must be an array of {RECORD}, got {found.dtype}")
        training = GloveTraining(
            shuffled(found, folder / "shuffled", seed) if shuffle else found,
            words,
            counts=counts,
            dim=dim,
            x_max=x_max,
            alpha=alpha,
            lr=lr,
            epochs=epochs,
            threads=threads,
            init=init,
            seed=seed,
        )
        training.run()
        return training.model
