"""Prompts in whatever form they come: a text or several, ids of one or of several prompts,
with or without padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plmcore._core import ArgumentError, Tensor


@dataclass
class Prompts:
    rows: list[np.ndarray]  # int64, without padding
    shown: np.ndarray | None  # the ids as they were given, [B, T]; None: they were not one array
    text: bool
    single: bool  # one text or one list of ids, not a list of them

    @property
    def width(self) -> int:
        return max(len(r) for r in self.rows) if self.shown is None else self.shown.shape[1]

    def left_padded(self, pad: int) -> np.ndarray:
        if self.shown is not None:
            return self.shown
        out = np.full((len(self.rows), self.width), pad, np.int64)
        for i, row in enumerate(self.rows):
            out[i, self.width - len(row) :] = row
        return out


def prompts_of(
    inputs: Any, attention_mask: Any, tokenizer: Any, vocabulary: int, pad: int | None, eos: list[int]
) -> Prompts:
    """pad: ids that are padding where no mask says so, unless it also ends sequences."""
    texts = [inputs] if isinstance(inputs, str) else inputs
    if isinstance(texts, Sequence) and texts and all(isinstance(t, str) for t in texts):
        if tokenizer is None:
            raise ArgumentError(
                "this model has no tokenizer: pass ids, or load a directory with tokenizer files"
            )
        if "" in texts:
            raise ArgumentError(
                f"prompt {list(texts).index('')} is empty: there must be a token to start from"
            )
        batch = tokenizer(list(texts))
        rows = [ids[mask != 0] for ids, mask in zip(batch["input_ids"], batch["attention_mask"])]
        return checked(Prompts(rows, None, True, isinstance(inputs, str)), vocabulary)
    inputs = inputs.numpy() if isinstance(inputs, Tensor) else inputs
    try:
        array = np.asarray(inputs)
    except ValueError:
        array = np.asarray(None)
    if array.dtype == object or (
        array.size == 0 and array.ndim == 1 and len(inputs)
    ):  # lists of different lengths
        if not isinstance(inputs, Sequence) or not all(isinstance(r, (Sequence, np.ndarray)) for r in inputs):
            raise ArgumentError(
                f"prompts must be a text, texts, ids or lists of ids, got {type(inputs).__name__}"
            )
        rows = [whole_numbers(np.asarray(r)) for r in inputs]
        return checked(Prompts(rows, None, False, False), vocabulary)
    array = whole_numbers(array)
    single = array.ndim == 1
    shown = array[None] if single else array
    if shown.ndim != 2 or not shown.size:
        raise ArgumentError(
            f"the ids of prompts must be [batch, length] and not empty, got {list(array.shape)}"
        )
    if attention_mask is not None:
        mask = np.asarray(attention_mask.numpy() if isinstance(attention_mask, Tensor) else attention_mask)
        mask = mask[None] if mask.ndim == 1 else mask
        if mask.shape != shown.shape:
            raise ArgumentError(
                f"attention_mask must be {list(shown.shape)} like the ids, got {list(mask.shape)}"
            )
    else:
        mask = shown != pad if pad is not None and pad not in eos else np.ones_like(shown)
    return checked(Prompts([ids[m != 0] for ids, m in zip(shown, mask)], shown, False, single), vocabulary)


def whole_numbers(array: np.ndarray) -> np.ndarray:
    if array.size and array.dtype.kind not in "iu":
        raise ArgumentError(f"ids must be whole numbers, got {array.dtype}")
    return array.astype(np.int64)


def checked(prompts: Prompts, vocabulary: int) -> Prompts:
    for i, row in enumerate(prompts.rows):
        if not len(row):
            raise ArgumentError(f"prompt {i} is empty: there must be a token to start from")
        if row.min() < 0 or row.max() >= vocabulary:
            bad = row.min() if row.min() < 0 else row.max()
            raise ArgumentError(f"prompt {i}: the id {bad} is not in the vocabulary of {vocabulary}")
    return prompts
