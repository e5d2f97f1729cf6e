from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError, IndexRangeError
from plmcore.objectives import packing, rows
from plmcore.objectives.layout import Format
from plmcore.objectives.rng import Rng

IGNORED = -100  # the label of what is not predicted


class Objective:
    """Turns examples of a corpus into batches: arrays by the names that the model's forward takes.

    A row is a function of the data, the settings, seed, epoch and its index alone; other rows change its
    padding, nothing else. With `copies` the noise of an epoch is that of epoch % copies, as if so many
    corrupted copies of the data had been written; else every epoch has its own.
    """

    labels: str = ""  # their kind, see plmcore.models.labels
    copies: int | None = None
    streams: int | None = None  # rows that go on from batch to batch

    def __len__(self) -> int:
        return self.examples(0)

    def examples(self, epoch: int) -> int:
        """The number of examples of an epoch."""
        raise NotImplementedError

    def lengths(self, epoch: int) -> np.ndarray | None:
        """Tokens of each example's input, for batches of like lengths; None where all are equal."""
        return None

    def batch(self, indices: Sequence[int] | np.ndarray, *, seed: int, epoch: int) -> dict[str, np.ndarray]:
        """The arrays of these examples by the names of the model's arguments.

        A row depends on seed, epoch and its index only.
        """
        indices = np.asarray(indices)
        if indices.ndim != 1 or not len(indices) or indices.dtype.kind not in "iu":
            raise ArgumentError(
                f"indices must be a list of one or more whole numbers, got {indices.dtype} "
                f"{list(indices.shape)}"
            )
        n, indices = self.examples(epoch), indices.astype(np.int64)
        unsigned = indices.view(np.uint64)  # in which a negative one is too large as well
        if unsigned.max() >= n:
            raise IndexRangeError(
                f"{type(self).__name__} has {n} examples in epoch {epoch}, got index "
                f"{indices[unsigned.argmax()]}"
            )
        noise = epoch if self.copies is None else epoch % self.copies
        return self.build(indices, Rng(seed, noise, unsigned))

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        """The arrays of a batch; what subclasses implement."""
        raise NotImplementedError


class TextObjective(Objective):
    """Examples that are runs of text. `length` counts the special tokens of `format` too."""

    def __init__(
        self,
        corpus: Any,
        tokenizer: Any,
        length: int,
        packing_kind: str,
        *,
        separator: int | None = None,
        stride: int | None = None,
        streams: int | None = None,
        copies: int | None = None,
        body: int | None = None,
    ):
        check_same_tokenizer(corpus, tokenizer)
        if copies is not None and copies < 1:
            raise ArgumentError(f"copies must be at least 1, got {copies}")
        self.corpus, self.tokenizer, self.copies, self.streams = corpus, tokenizer, copies, streams
        self.format = Format(tokenizer)
        body = length - self.format.specials if body is None else body
        self.packing = packing.pack(corpus, packing_kind, body, separator, stride, streams)
        self.special = special_table(tokenizer)
        if not self.packing.count:
            raise ArgumentError("the corpus has no text")

    def examples(self, epoch: int) -> int:
        return self.packing.count

    def lengths(self, epoch: int) -> np.ndarray | None:
        lengths = self.packing.lengths()
        return None if lengths is None else lengths + self.format.specials

    def take(self, examples: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ids [B, T] with padding, lengths [B], and where tokens stand that an objective may change: not
        padding, not special.
        """
        starts, lengths = self.packing.runs(examples)
        ids = self.packing.text.take(starts, lengths, self.format.pad)
        able = ~self.special[ids]
        if not self.special[self.format.pad]:
            able &= rows.inside(lengths)
        return ids, lengths, able


def special_table(tokenizer: Any) -> np.ndarray:
    """bool by id."""
    ids = np.asarray(tokenizer.special_ids, np.int64)
    table = np.zeros(max(tokenizer.vocab_size, int(ids.max(initial=0)) + 1), bool)
    table[ids] = True
    return table


def check_same_tokenizer(corpus: Any, tokenizer: Any) -> None:
    if corpus.vocab_size > tokenizer.vocab_size:
        raise ArgumentError(
            f"the corpus has ids up to {corpus.vocab_size}, and the tokenizer {tokenizer.vocab_size} tokens"
        )
    written = (corpus.tokenizer or {}).get("fingerprint")
    if written and written != tokenizer.fingerprint:
        raise ArgumentError(
            f"the corpus was written with another tokenizer: its fingerprint is {written[:12]}..., "
            f"this one's is {tokenizer.fingerprint[:12]}..."
        )


def need(tokenizer: Any, token: str, objective: str) -> int:
    """The id of a special token ("mask", "eos", ...) that an objective cannot do without."""
    found = getattr(tokenizer, f"{token}_token_id")
    if found is None:
        raise ArgumentError(f"{objective} needs a {token} token, and this tokenizer has none")
    return found


def check_share(name: str, value: float, *, zero: bool = False) -> float:
    if not (0 <= value if zero else 0 < value) or not value <= 1:
        raise ArgumentError(f"{name} must be {'from 0' if zero else 'above 0 and'} up to 1, got {value}")
    return value
