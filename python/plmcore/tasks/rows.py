"""Token rows of unequal lengths, and the padded batches made of them."""

from __future__ import annotations

import collections
import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.tokenizers import Tokenizer

CHUNK = 512  # texts that are encoded together


class Rows:
    """Rows of ids with their token types, and of each the record it comes
    from (windows of a long text are several rows).

    Padding is where the family's heads expect it, whatever side a tokenizer was told to pad for generation:
    in front of XLNet's last token, which speaks for a sequence, and behind the texts of all others, whose
    first token does, or whose positions count from there.
    """

    def __init__(self, tokenizer: Tokenizer, typed: bool):
        self.tokenizer, self.typed = tokenizer, typed
        self.ids: list[np.ndarray] = []
        self.types: list[np.ndarray] = []
        self.chars: list[np.ndarray] = []  # where the tokenizer spells its tokens
        self.record: list[int] = []
        self.detail: list[dict[str, np.ndarray]] = []

    def add(
        self,
        texts: Sequence[Any],
        pairs: Sequence[Any] | None = None,
        *,
        detail: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """Encodes texts, or pairs of them, behind those that are there.

        `detail`: names of Batch's further arrays to keep.
        """
        first = self.record[-1] + 1 if self.record else 0
        for start in range(0, len(texts), CHUNK):
            chosen = slice(start, start + CHUNK)
            batch = self.tokenizer(texts[chosen], None if pairs is None else pairs[chosen], **options)
            for r, source in enumerate(batch.sample):
                real = batch["attention_mask"][r] == 1
                self.ids.append(batch["input_ids"][r][real].astype(np.int32))
                self.types.append(batch["token_type_ids"][r][real].astype(np.int8))
                if "char_ids" in batch:
                    self.chars.append(batch["char_ids"][r][real].astype(np.uint8))
                self.record.append(first + start + int(source))
                self.detail.append({name: getattr(batch, name)[r][real] for name in detail})

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> np.ndarray:
        return np.array([len(x) for x in self.ids], np.int64)

    @property
    def divided(self) -> int:
        """How many records make several rows."""
        return sum(n > 1 for n in collections.Counter(self.record).values())

    def batch(self, numbers: Sequence[int] | np.ndarray) -> dict[str, np.ndarray]:
        """input_ids and attention_mask [B, T], token_type_ids where the model has them, and char_ids
        [B, T, W] where the tokenizer gives them.
        """
        width = max(len(self.ids[i]) for i in numbers)
        pad = self.tokenizer.pad_token_id or 0
        batch = {"input_ids": self._filled([self.ids[i] for i in numbers], width, pad)}
        batch["attention_mask"] = self._filled([np.ones(len(self.ids[i])) for i in numbers], width, 0)
        if self.typed:
            batch["token_type_ids"] = self._filled(
                [self.types[i] for i in numbers], width, self.tokenizer.family.pad_type
            )
        if self.chars:
            batch["char_ids"] = self._filled([self.chars[i] for i in numbers], width, 0)
        return batch

    def filled(
        self, numbers: Sequence[int] | np.ndarray, values: Sequence[np.ndarray], fill: int
    ) -> np.ndarray:
        """One value per token of each row, `fill` for padding.  [B, T]"""
        return self._filled(values, max(len(self.ids[i]) for i in numbers), fill)

    def _filled(self, rows: Sequence[np.ndarray], width: int, fill: int) -> np.ndarray:
        out = np.full((len(rows), width, *np.shape(rows[0])[1:]), fill, np.int64)
        for row, values in zip(out, rows, strict=True):
            row[self.start(width, len(values)) :][: len(values)] = values
        return out

    def start(self, width: int, length: int) -> int:
        """The column where a row of this length begins."""
        return width - length if self.tokenizer.family.padding_side == "left" else 0


def takes_types(model: Any, tokenizer: Tokenizer) -> bool:
    """Whether the model tells the texts of a pair apart by token types."""
    if getattr(model, "typed", False):
        return True
    format = tokenizer.format
    most = max((part.type for part in (*format.single, *format.pair)), default=0)
    body = getattr(model, "body", model)
    known = "token_type_ids" in inspect.signature(body.encode).parameters
    there = getattr(model.config, "type_vocab_size", None)  # XLNet compares types, and has no table of them
    return known and most > 0 and (there is None or most < there)


def check_length(length: int, longest: int | None, added: int) -> None:
    """`length` tokens must fit the model's positions and leave room for a text."""
    if longest is not None and length > longest:
        raise ArgumentError(f"data.length is {length}, more than the {longest} positions of the model")
    if length <= added:
        raise ArgumentError(f"data.length is {length}, and {added} special tokens leave no room for a text")
