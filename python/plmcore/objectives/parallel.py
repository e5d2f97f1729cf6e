"""Objectives over two texts that belong together: translations, and vectors of like texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from plmcore._core import ArgumentError, Tensor, ops
from plmcore.models.labels import DECODER, PAIRS
from plmcore.objectives.layout import Format
from plmcore.objectives.objective import Objective, check_same_tokenizer
from plmcore.objectives.rng import Rng
from plmcore.objectives.text import Text


class Side:
    """One of the texts: numbered runs of a corpus, each cut to `length` with its special tokens."""

    def __init__(self, corpus: Any, tokenizer: Any, length: int):
        check_same_tokenizer(corpus, tokenizer)
        self.corpus, self.format, self.text = corpus, Format(tokenizer), Text(corpus)
        self.room = length - self.format.specials
        if self.room < 1:
            raise ArgumentError(
                f"length {length} leaves no room beside {self.format.specials} special tokens"
            )

    def sizes(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        return np.minimum(ends - starts, self.room)

    def take(self, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ids [B, T] with padding, lengths [B]"""
        lengths = self.sizes(starts, ends)
        return self.text.take(starts, lengths, self.format.pad), lengths

    def document(self, i: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.corpus.documents[i], self.corpus.documents[i + 1]

    def labels(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        ids, lengths = self.take(starts, ends)
        return self.format(lengths).labels(ids)


class Translation(Objective):
    """Document i of one corpus into document i of the other: input_ids of the source, labels of the target.

    reverse=True turns the source's tokens round, which puts the first words of both near one another.
    Tokenizers may differ.
    """

    labels = DECODER

    def __init__(
        self,
        source: Any,
        target: Any,
        tokenizer: Any,
        target_tokenizer: Any = None,
        length: int = 128,
        *,
        reverse: bool = False,
    ):
        if len(source) != len(target) or not len(source):
            raise ArgumentError(
                f"source and target need as many documents, got {len(source)} and {len(target)}"
            )
        self.source = Side(source, tokenizer, length)
        self.target = Side(target, target_tokenizer or tokenizer, length)
        self.reverse = reverse

    def examples(self, epoch: int) -> int:
        return len(self.source.corpus)

    def lengths(self, epoch: int) -> np.ndarray:
        """The longer of the two sides."""
        every = np.arange(self.examples(epoch))
        sides = (self.source, self.target)
        return np.maximum(*(s.sizes(*s.document(every)) + s.format.specials for s in sides))

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        ids, lengths = self.source.take(*self.source.document(examples))
        if self.reverse:
            columns = np.arange(ids.shape[1])
            ids = np.take_along_axis(
                ids, np.where(columns < lengths[:, None], lengths[:, None] - 1 - columns, columns), 1
            )
        return self.source.format(lengths).inputs(ids) | {
            "labels": self.target.labels(*self.target.document(examples))
        }


class ContrastivePairs(Objective):
    """A text, one that is like it and, with negatives=True, one that is not: input_ids, positive_input_ids,
    negative_input_ids.

    Alike are two sentences of one document, or with `others` document i of both corpora. A negative is of
    another document. Without negatives the other positives of a batch are those (info_nce).
    """

    labels = PAIRS

    def __init__(
        self, corpus: Any, tokenizer: Any, length: int = 64, *, others: Any = None, negatives: bool = False
    ):
        self.side = Side(corpus, tokenizer, length)
        self.others = None if others is None else Side(others, tokenizer, length)
        self.negatives = negatives
        if others is not None:
            if len(others) != len(corpus):
                raise ArgumentError(
                    f"the corpora need as many documents, got {len(corpus)} and {len(others)}"
                )
            self.documents = np.arange(len(corpus))
        else:
            self.documents = np.flatnonzero(np.diff(corpus.document_sentences) > 1)
        if not len(self.documents):
            raise ArgumentError(
                "the corpus has no document of two sentences; pass `others` for pairs of documents"
            )
        if negatives and len(corpus) < 2:
            raise ArgumentError("a negative is of another document, and the corpus has one alone")

    def examples(self, epoch: int) -> int:
        return len(self.documents)

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        document = self.documents[examples]
        other = rng.below(max(1, len(self.side.corpus) - 1), "document")
        other += other >= document
        if self.others is not None:
            texts = {
                "": (self.side, *self.side.document(document)),
                "positive_": (self.others, *self.others.document(document)),
            }
            negative = self.others, *self.others.document(other % len(self.side.corpus))
        else:
            first, n = self.sentences_of(document)
            a = rng.below(n, "first")
            b = (a + 1 + rng.below(n - 1, "second")) % n
            texts = {
                "": (self.side, *self.sentence(first + a)),
                "positive_": (self.side, *self.sentence(first + b)),
            }
            first, n = self.sentences_of(other % len(self.side.corpus))
            negative = self.side, *self.sentence(first + rng.below(n, "negative"))
        if self.negatives:
            texts["negative_"] = negative
        batch: dict[str, np.ndarray] = {}
        for prefix, (side, *run) in texts.items():
            ids, lengths = side.take(*run)
            batch |= {prefix + name: value for name, value in side.format(lengths).inputs(ids).items()}
        return batch

    def sentences_of(self, document: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first one, and how many."""
        first, after = (self.side.corpus.document_sentences[document + k] for k in (0, 1))
        return first, after - first

    def sentence(self, i: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first token of each of these sentences, and the end of each."""
        return self.side.corpus.sentences[i], self.side.corpus.sentences[i + 1]


def pairwise_loss(positive: Tensor, negative: Tensor) -> Tensor:
    """mean of -log(e^p / (e^p + e^n)).  scores [B]"""
    d = ops.sub(negative, positive)
    tail = ops.log(ops.affine(ops.exp(ops.affine(ops.abs(d), -1.0, 0.0)), 1.0, 1.0))
    return ops.mean(ops.add(ops.relu(d), tail))


def info_nce(x: Tensor, y: Tensor, temperature: float = 0.05) -> Tensor:
    """Which y belongs to each x, by their dot products / temperature;
    for cosines pass normalised vectors. x, y [B, C]
    """
    scores = ops.affine(ops.matmul(x, y, transpose_b=True), 1 / temperature, 0.0)  # [B, B]
    return ops.cross_entropy(scores, ops.arange(0, x.shape[0], like=scores))
