"""How a corpus is cut into examples: each is a run of a Text, given by its start and length."""

from __future__ import annotations

import array
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from plmcore._core import ArgumentError
from plmcore.objectives import rows
from plmcore.objectives.text import Text

KINDS = ("windows", "documents", "sentences", "full-sentences")
BLOCK = 1 << 18  # sentences looked at in one go


class Places(Protocol):
    """What windows are cut of."""

    @property
    def size(self) -> int: ...


class Windows:
    """Runs of exactly `length`, `stride` apart, whatever the documents; what is left at the end is not used.

    With `streams` the text is cut into that many equal parts first, and example i is window i // streams of
    part i % streams: batches of `streams` consecutive examples continue one another row by row, which is what
    a model with a carried state needs.
    """

    def __init__(self, text: Places, length: int, stride: int | None = None, streams: int | None = None):
        self.text: Any = text
        self.length, self.streams = length, streams
        self.stride = length if stride is None else stride
        if self.stride < 1:
            raise ArgumentError(f"stride must be at least 1, got {stride}")
        if streams is None:
            self.length = min(length, text.size)
            self.count = 0 if not text.size else (text.size - self.length) // self.stride + 1
            return
        if streams < 1:
            raise ArgumentError(f"streams must be at least 1, got {streams}")
        self.part = text.size // streams
        if self.part < length:
            raise ArgumentError(
                f"{streams} streams of a text of {text.size} tokens are {self.part} tokens long: no "
                f"window of {length} fits; take fewer streams, shorter windows or more text"
            )
        self.count = streams * ((self.part - length) // self.stride + 1)

    def runs(self, examples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """starts, lengths"""
        if self.streams is None:
            starts = examples * self.stride
        else:
            starts = examples % self.streams * self.part + examples // self.streams * self.stride
        return starts, np.full(len(examples), self.length)

    def lengths(self) -> None:
        """All are equal."""


class Documents:
    """Each document in pieces of at most `length`."""

    def __init__(self, text: Text, length: int):
        self.text, self.length = text, length
        self.pieces = np.append(0, np.cumsum(-(-np.diff(text.corpus.documents) // length)))
        self.count = int(self.pieces[-1])

    def runs(self, examples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        document = np.searchsorted(self.pieces, examples, side="right") - 1
        before = (examples - self.pieces[document]) * self.length
        starts, ends = (self.text.corpus.documents[document + k] for k in (0, 1))
        return starts + before, np.minimum(self.length, ends - starts - before)

    def lengths(self) -> np.ndarray:
        return self.runs(np.arange(self.count))[1]


class Sentences:
    """As many whole sentences as fit into `length`, of one document or, with `across`,
    of as many as it takes.

    A sentence longer than that is cut. The separator of a document that ends a run is not in it.
    """

    def __init__(self, text: Text, length: int, across: bool):
        self.text, self.edges = text, np.append(0, greedy(text, length, across))
        self.count = len(self.edges) - 1
        # Does a separator end this run? One byte for each.
        self.closed = (
            None if text.separator is None else np.isin(self.edges[1:], text.ends, assume_unique=True)
        )

    def runs(self, examples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        starts = self.edges[examples]
        lengths = self.edges[examples + 1] - starts
        return starts, lengths if self.closed is None else lengths - self.closed[examples]

    def lengths(self) -> np.ndarray:
        return self.runs(np.arange(self.count))[1]


def greedy(text: Text, length: int, across: bool) -> np.ndarray:
    """The ends of runs of whole sentences, each as long as it can be; together they are the whole text."""
    found = array.array("q")
    separators = 0 if text.separator is None else 1
    start = end = 0
    for cuts, closed in cut_points(text, length):
        for cut, close in zip(cuts, closed):
            if cut - start - (close and separators) > length and end > start:
                found.append(end)
                start = end
            end = cut
            if close and not across and end > start:
                found.append(end)
                start = end
    if end > start:
        found.append(end)
    return np.frombuffer(found, np.int64) if found else np.zeros(0, np.int64)


def cut_points(text: Text, length: int) -> Iterator[tuple[list[int], list[bool]]]:
    """The ends of sentences, and cuts inside those longer than `length`; and whether a document ends there.

    Block by block.
    """
    documents, sentences = text.corpus.documents, text.corpus.sentences
    separators = 0 if text.separator is None else 1
    previous = 0
    for block in range(1, len(sentences), BLOCK):
        ends = sentences[block : block + BLOCK]
        document = np.searchsorted(documents, ends) - 1
        last = ends == documents[document + 1]
        ends = ends + separators * (document + last)
        before = np.append(previous, ends[:-1])
        more = (ends - separators * last - before - 1) // length
        inner = np.repeat(before, more) + length * rows.ranges(np.ones_like(more), more)
        cuts = np.insert(ends, np.repeat(np.arange(len(ends)), more), inner)
        closed = np.zeros(len(cuts), bool)
        closed[np.cumsum(more + 1) - 1] = last
        yield cuts.tolist(), closed.tolist()
        previous = ends[-1]


def pack(
    corpus: Any,
    kind: str,
    length: int,
    separator: int | None,
    stride: int | None = None,
    streams: int | None = None,
) -> Any:
    """The packing of this kind; `separator` stands after each document where one run may hold several."""
    if length < 1:
        raise ArgumentError(f"length leaves {length} tokens for text")
    if kind == "windows":
        return Windows(Text(corpus, separator), length, stride, streams)
    if stride is not None or streams is not None:
        raise ArgumentError(f"stride and streams are for packing='windows', got packing={kind!r}")
    if kind == "documents":
        return Documents(Text(corpus), length)
    if kind == "sentences":
        return Sentences(Text(corpus), length, across=False)
    if kind == "full-sentences":
        return Sentences(Text(corpus, separator), length, across=True)
    raise ArgumentError(f"packing must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
