"""word2vec: skip-gram and CBOW, negative sampling and hierarchical softmax. The native side: cpp/vectors."""

from __future__ import annotations

import math
import pathlib
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from plmcore import _core
from plmcore._core import ArgumentError, Tensor
from plmcore._core.vectors import Word2Vec, first_vectors
from plmcore.runtime.kinds import checked
from plmcore.train import checkpoint
from plmcore.train.training import Parts, Training
from plmcore.vectors.corpus import Corpus, Text
from plmcore.vectors.table import Vectors

RATES = {"skip-gram": 0.025, "cbow": 0.05}
WORDS_PER_STEP = 1_000_000
_END = 2**62
_FIELDS, _TOTAL = 7, 5  # of a thread in the trainer's state; which one has its words


class Word2VecTraining(Training):
    """A step is `words_per_step` words of text. On one thread the run repeats the original program."""

    def __init__(
        self,
        corpus: Corpus,
        ids: pathlib.Path,
        *,
        model: str = "skip-gram",
        dim: int = 100,
        window: int = 5,
        negative: int = 5,
        hierarchical: bool = False,
        sample: float = 1e-3,
        epochs: int = 5,
        lr: float | None = None,
        threads: int | None = None,
        words_per_step: int = WORDS_PER_STEP,
        **options: Any,
    ):
        if model not in RATES:
            raise ArgumentError(f"word2vec: model must be {' or '.join(RATES)}, got {model!r}")
        if dim < 1 or words_per_step < 1:
            raise ArgumentError(f"word2vec: dim must be at least 1, got {dim}")
        seed = options.get("seed", 0)
        self.trainer = Word2Vec(
            str(ids),
            corpus.counts.tolist(),
            stride := -(-dim // 16) * 16,
            model == "cbow",
            window,
            negative,
            hierarchical,
            sample,
            lr or RATES[model],
            epochs,
            self._threads(threads),
            seed,
        )
        self.corpus, self.dim, self.share = corpus, dim, epochs * self.trainer.words // self._threads(threads)
        steps = max(1, math.ceil(epochs * self.trainer.words / words_per_step))
        super().__init__(data=checkpoint.digest(ids), steps=steps, **options)
        shape = (len(corpus.words), stride)
        self.weights = {"input": np.zeros(shape, np.float32)}
        if negative:
            self.weights["output"] = np.zeros(shape, np.float32)
        if hierarchical:
            self.weights["inner"] = np.zeros(shape, np.float32)
        first_vectors(self.weights["input"], dim, seed + 1)

    @staticmethod
    def _threads(threads: int | None) -> int:
        return _core.num_threads() if threads is None else threads

    def compute(self) -> dict[str, float]:
        before = self._words()
        until = _END if self.step + 1 == self.steps else self.share * (self.step + 1) // self.steps
        loss, pairs = self.trainer.train(
            self.weights["input"], self.weights.get("output"), self.weights.get("inner"), until
        )
        return {"loss": loss / max(pairs, 1), "tokens": self._words() - before, "lr": self.trainer.rate}

    def _words(self) -> int:
        return sum(self.trainer.state[2 + _TOTAL :: _FIELDS])

    def tensors(self) -> Parts:
        return {"weights": self.weights, "trainer": {"state": np.array(self.trainer.state, np.int64)}}

    def load(self, parts: Mapping[str, Mapping[str, Tensor]]) -> None:
        found = {name: parts["weights"][name].numpy() for name in self.weights}
        for name, value in found.items():
            if value.shape != self.weights[name].shape:
                raise ValueError(f"{name} must be {list(self.weights[name].shape)}, got {list(value.shape)}")
        self.trainer.state = parts["trainer"]["state"].numpy().tolist()
        for name, value in found.items():
            self.weights[name][:] = value

    @property
    def model(self) -> Vectors:
        """The vectors as they are now."""
        return Vectors(self.corpus.words, self.weights["input"][:, : self.dim].copy(), self.corpus.counts)


@checked
def word2vec(
    text: Text,
    *,
    model: str = "skip-gram",
    dim: int = 100,
    window: int = 5,
    negative: int = 5,
    hierarchical: bool = False,
    sample: float = 1e-3,
    min_count: int = 5,
    epochs: int = 5,
    lr: float | None = None,
    threads: int | None = None,
    seed: int = 0,
) -> Vectors:
    """Trains vectors on text files: one sentence to a line, words between white space.

    model: "skip-gram" or "cbow". negative: words drawn against each word. hierarchical: trains against the
    way in a Huffman tree, too; negative=0 leaves that alone. sample: the share of a text above which a word
    is left out now and then. lr: 0.025 for skip-gram and 0.05 for CBOW unless given; it falls to 0. With one
    thread and seed 0 the draws are those of the original program; several threads write to the vectors at
    once, and no two runs are the same.
    """
    corpus = Corpus(text, min_count, word2vec=True)
    with tempfile.TemporaryDirectory() as folder:
        ids = pathlib.Path(folder, "ids")
        corpus.write(ids)
        training = Word2VecTraining(
            corpus,
            ids,
            model=model,
            dim=dim,
            window=window,
            negative=negative,
            hierarchical=hierarchical,
            sample=sample,
            epochs=epochs,
            lr=lr,
            threads=threads,
            seed=seed,
        )
        training.run()
        return training.model
