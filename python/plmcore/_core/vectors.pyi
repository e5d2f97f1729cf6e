"""Trainers of word vectors, for plmcore.vectors."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

class Vocabulary:
    """Words of a text, which comes in chunks, and the text as ids."""

    def __init__(self, ends: bool) -> None: ...
    def count(self, chunk: bytes) -> None:
        """Counts the words of a chunk."""

    def sort(self, min_count: int, by_bytes: bool, last: bool) -> None:
        """
        Keeps words that were seen min_count times, by falling count; equal ones in order of appearance or by bytes. last: the word that the text ends with counts.
        """

    def encode(self, chunk: bytes) -> bytes:
        """The ids of the words that are known, from 1; 0 at the end of a line."""

    def end(self, last: bool) -> bytes:
        """Ends the text: the id of its last word, if that counts."""

    @property
    def words(self) -> list[bytes]:
        """The words, as bytes."""

    @property
    def counts(self) -> list[int]:
        """How often each word was seen."""

class Word2Vec:
    """The trainer of word2vec over a file of int32 ids."""

    def __init__(
        self,
        ids: str,
        counts: Sequence[int],
        stride: int,
        cbow: bool,
        window: int,
        negative: int,
        hierarchical: bool,
        sample: float,
        rate: float,
        epochs: int,
        threads: int,
        seed: int,
    ) -> None: ...
    def train(
        self, input: NDArray[Any], output: NDArray[Any] | None, inner: NDArray[Any] | None, until: int
    ) -> tuple[float, int]:
        """
        Trains each thread to `until` of its words, at the end of a sentence; the sums of losses and pairs.
        """

    @property
    def state(self) -> list[int]:
        """What a checkpoint keeps."""

    @state.setter
    def state(self, arg: Sequence[int], /) -> None: ...
    @property
    def words(self) -> int:
        """Words of an epoch."""

    @property
    def done(self) -> int:
        """Words that the threads have told of."""

    @property
    def finished(self) -> bool:
        """Whether all epochs are done."""

    @property
    def rate(self) -> float:
        """The learning rate."""

def first_vectors(input: NDArray[Any], dim: int, seed: int) -> None:
    """What word2vec begins with.  input float32 [V, stride]"""

class Cooccurrences:
    """
    Sums of 1 / distance over pairs of words, inside a limit of memory in bytes.
    """

    def __init__(self, folder: str, vocabulary: int, window: int, symmetric: bool, memory: int) -> None: ...
    def add(self, ids: NDArray[Any]) -> None:
        """Counts the pairs of int32 ids, 0 at the end of a line."""

    def write(self, path: str) -> int:
        """Writes the records by row and column; their number."""

    @property
    def runs(self) -> int:
        """Files that were written because the memory was full."""

def glove(
    rows: NDArray[Any],
    width: int,
    records: NDArray[Any],
    x_max: float,
    alpha: float,
    rate: float,
    threads: int,
) -> float:
    """
    Trains on records, int64 [n, 2] of 16 bytes each; the sum of the costs.  rows float64 [2, V, 2 width + 8]: vector, its accumulators, bias, its accumulator
    """
