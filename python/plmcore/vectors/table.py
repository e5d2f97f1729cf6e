"""Word vectors: a word has one row, wherever it stands."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plmcore._core import ArgumentError, FormatError
from plmcore.evaluate.correlation import spearman
from plmcore.files.text import lines
from plmcore.formats import registry, word_vectors
from plmcore.runtime.kinds import checked

FILE = "vectors.safetensors"  # in a directory
FORMATS = ("word2vec-bin", "word2vec-text", "glove", "safetensors")
_BATCH = 256  # questions that are answered at a time

Path = str | os.PathLike[str]


class Analogies(NamedTuple):
    """Questions that were answered right, of how many."""

    right: int
    total: int

    @property
    def accuracy(self) -> float:
        """right / total, 0 without questions."""
        return self.right / self.total if self.total else 0.0


class Similarities(NamedTuple):
    """The rank correlation with people's judgements over `pairs`; `missing` ones had an unknown word."""

    spearman: float
    pairs: int
    missing: int


class Vectors:
    """`words`, their vectors in the rows of `matrix` float32 [V, dim], and their `counts` int64 [V] or None.

    Of vectors that glove trained, `parameters` is float64 [2, V, dim + 1] (words and contexts, the bias last)
    and `losses` has the mean cost of each pass.
    """

    def __init__(self, words: Sequence[str], matrix: np.ndarray, counts: np.ndarray | None = None):
        self.words, self.matrix = list(words), np.asarray(matrix, np.float32)
        self.counts = None if counts is None else np.asarray(counts, np.int64)
        self.parameters: np.ndarray | None = None
        self.losses: list[float] | None = None
        if self.matrix.ndim != 2 or not self.matrix.size or len(self.matrix) != len(self.words):
            raise ArgumentError(
                f"Vectors: {len(self.words)} words need a matrix [{len(self.words)}, dim], got "
                f"{list(self.matrix.shape)}"
            )
        if self.counts is not None and self.counts.shape != (len(self.words),):
            raise ArgumentError(
                f"Vectors: {len(self.words)} words need as many counts, got {list(self.counts.shape)}"
            )
        if not np.isfinite(self.matrix).all():
            raise ArgumentError("Vectors: the matrix has numbers that are not finite")
        self._places = {word: i for i, word in enumerate(self.words)}
        if len(self._places) != len(self.words):
            twice = next(word for i, word in enumerate(self.words) if self._places[word] != i)
            raise ArgumentError(f"Vectors: the word {twice!r} is there twice")
        self._unit: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._places

    def __getitem__(self, word: str) -> np.ndarray:
        """The vector of a word; KeyError where there is none."""
        return self.matrix[self._place(word)]

    def _place(self, word: str) -> int:
        if word not in self._places:
            raise KeyError(f"there is no vector of {word!r}")
        return self._places[word]

    @property
    def unit(self) -> np.ndarray:
        """The matrix with rows of length 1."""
        if self._unit is None:
            lengths = np.linalg.norm(self.matrix, axis=1, keepdims=True)
            self._unit = self.matrix / np.where(lengths == 0, 1, lengths)
        return self._unit

    @checked
    def similarity(self, a: str, b: str) -> float:
        """The cosine of two words."""
        return float(self.unit[self._place(a)] @ self.unit[self._place(b)])

    @checked
    def most_similar(
        self, positive: str | Sequence[str], negative: Sequence[str] = (), k: int = 10
    ) -> list[tuple[str, float]]:
        """The k words with the largest cosine to the sum of the positive words less the negative ones, of
        which none is an answer.
        """
        if k < 1:
            raise ArgumentError(f"most_similar: k must be at least 1, got {k}")
        plus = [self._place(w) for w in ([positive] if isinstance(positive, str) else positive)]
        minus = [self._place(w) for w in ([negative] if isinstance(negative, str) else negative)]
        if not plus and not minus:
            raise ArgumentError("most_similar: there must be at least one word")
        wanted = self.unit[plus].sum(0) - self.unit[minus].sum(0)
        scores = self.unit @ (wanted / (np.linalg.norm(wanted) or 1.0))
        scores[plus + minus] = -np.inf
        best = np.argsort(-scores, kind="stable")[: min(k, len(self) - len({*plus, *minus}))]
        return [(self.words[i], float(scores[i])) for i in best]

    @checked
    def analogies(self, file: Path, restrict: int = 30000) -> Analogies:
        """Questions "a b c d" in lines, answered by the word nearest to b - a + c (3CosAdd) among the first
        `restrict` words. Questions are lower-cased; those with a word outside are left out.
        """
        if restrict < 1:
            raise ArgumentError(f"analogies: restrict must be at least 1, got {restrict}")
        asked = []
        for number, line in lines(file, "strict"):
            words = line.lower().split()
            if not words or words[0].startswith(":"):
                continue
            if len(words) != 4:
                raise FormatError(
                    f"'{os.fspath(file)}' line {number}: it must have four words, got {len(words)}"
                )
            places = [self._places.get(word, restrict) for word in words]
            if max(places) < restrict:
                asked.append(places)
        unit, right = self.unit[:restrict], 0
        questions = np.array(asked, np.int64).reshape(-1, 4)
        for at in range(0, len(questions), _BATCH):
            a, b, c, d = questions[at : at + _BATCH].T
            scores = (unit[b] - unit[a] + unit[c]) @ unit.T
            for known in (a, b, c):
                scores[np.arange(len(known)), known] = -np.inf
            right += int((scores.argmax(1) == d).sum())
        return Analogies(right, len(questions))

    @checked
    def similarities(self, file: Path) -> Similarities:
        """Pairs of words and people's scores in lines, against the cosines. A word that is unknown is looked
        for in lower case.
        """
        ours, theirs, missing = [], [], 0
        for number, line in lines(file, "strict"):
            pieces = line.split()
            if not pieces or line.startswith("#"):
                continue
            try:
                one, other, score = pieces[0], pieces[1], float(pieces[2])
            except (IndexError, ValueError):
                raise FormatError(
                    f"'{os.fspath(file)}' line {number}: it must have two words and a number"
                ) from None
            pair = [word if word in self else word.lower() for word in (one, other)]
            if all(word in self for word in pair):
                ours.append(self.similarity(*pair))
                theirs.append(score)
            else:
                missing += 1
        return Similarities(spearman(ours, theirs) if len(ours) > 1 else 0.0, len(ours), missing)

    @checked
    def save(self, path: Path, format: str = "safetensors") -> None:
        """Writes a file: word2vec-bin, word2vec-text, glove or safetensors, which alone keeps the counts."""
        if format not in FORMATS:
            raise ArgumentError(f"save: format must be {', '.join(FORMATS)}, got {format!r}")
        if any("\n" in word or not word for word in self.words):
            raise ArgumentError("save: a word is empty or has a line end")
        tensors = {"vectors": self.matrix, "words": word_vectors.packed([w.encode() for w in self.words])}
        if self.counts is not None:
            tensors["counts"] = self.counts
        write = registry.get(format).write
        assert write is not None
        write(pathlib.Path(path), tensors, None, None)


@checked
def load_vectors(path: Path) -> Vectors:
    """Opens a file of word vectors, or the directory of a run's result.

    word2vec's binary and text files, GloVe's, and safetensors are told apart by their content.
    """
    file = pathlib.Path(path)
    file = file / FILE if file.is_dir() else file
    tensors, _ = registry.read(file, mapped=False)
    if "vectors" not in tensors or "words" not in tensors:
        raise FormatError(f"'{file}' holds no word vectors: it has no tensors vectors and words")
    words = word_vectors.unpacked(tensors["words"].numpy(), f"'{file}'")
    counts = tensors["counts"].numpy() if "counts" in tensors else None
    try:
        return Vectors(words, tensors["vectors"].numpy(), counts)
    except ArgumentError as e:
        raise FormatError(f"'{file}' cannot be read: {e}") from None
