from __future__ import annotations

from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore._core import text as native
from plmcore.models.labels import TARGETS
from plmcore.objectives.objective import IGNORED, TextObjective
from plmcore.objectives.rng import Rng


class PermutationLM(TextObjective):
    """XLNet: some tokens are predicted in a random order, each from all that is not predicted and from those
    before it in the order.

    input_ids has every token; perm_mask [B, T, T] says with 1 what a position may not see, target_mapping
    [B, M, T] which positions are predicted, labels [B, M] what stands there. Targets are spans of 1 to
    `longest` tokens with weight 1/n, each within a stretch of `alpha / beta` as many tokens; with words=True
    they begin where words do.

    predict: exactly so many targets, made up with single tokens; it must be less than the text of a block.
    block: the order holds within blocks of so many tokens, and a block sees all of those before it and
        nothing of those after it, as a memory that is carried on demands (half the length in the published
        model).

    Spans lie within blocks, and `predict` is split evenly between them, the first taking what is left.
    Special tokens are never predicted. A target always sees a token: a block of targets alone gives up one.
    """

    labels = TARGETS

    def __init__(
        self,
        corpus: Any,
        tokenizer: Any,
        length: int = 512,
        *,
        packing: str = "windows",
        block: int | None = None,
        predict: int | None = None,
        longest: int = 5,
        alpha: int = 6,
        beta: int = 1,
        words: bool = True,
        stride: int | None = None,
        streams: int | None = None,
        copies: int | None = None,
    ):
        end = tokenizer.id_of("<eod>")
        super().__init__(
            corpus,
            tokenizer,
            length,
            packing,
            separator=tokenizer.eos_token_id if end is None else end,
            stride=stride,
            streams=streams,
            copies=copies,
        )
        self.length, self.block = length, length if block is None else block
        if self.block < 2:
            raise ArgumentError(f"block must be at least 2, got {block}")
        if predict is not None and not 0 < predict < self.block:
            raise ArgumentError(f"predict must be 1 to {self.block - 1} (less than a block), got {predict}")
        if longest < 1 or beta < 1 or alpha <= beta:
            raise ArgumentError(
                f"longest and beta must be at least 1 and alpha above beta, got longest {longest}, "
                f"alpha {alpha}, beta {beta}"
            )
        self.predict, self.longest, self.alpha, self.beta = predict, longest, alpha, beta
        self.weights = tuple(1 / n for n in range(1, longest + 1))
        self.word_table = np.asarray(tokenizer.word_starts) if words else None

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        ids, lengths, able = self.take(examples)
        layout = self.format(lengths)
        inputs, T = layout.inputs(ids), layout.width
        kinds = able.view(np.int8) + self.targets(ids, able, lengths, rng)
        kinds = layout.put(kinds, fill=0)  # [B, T], with the special tokens
        plain, targets = kinds == 1, kinds == 2
        if T <= self.block:
            block = np.broadcast_to(0, kinds.shape)
        else:
            block = np.maximum(np.arange(T) - layout.shift[:, None], 0) // self.block
        spare_one(targets, plain, block)

        # Ranks: earlier blocks first; in a block what is not predicted, then targets and special tokens in
        #     random order. i may see j
        # of a lower rank, and all that is not predicted in its own block.
        rank = 3.0 * block + np.where(plain, 0.0, 1.0 + rng.uniform("order", T))
        blocked = np.empty((len(ids), T, T), np.float32)
        native.permutation_mask(rank, plain, targets, blocked)
        row, column = np.nonzero(targets)
        which = np.arange(len(row)) - np.searchsorted(row, row)  # of its row's targets
        most = int(which.max(initial=0)) + 1
        mapping = np.zeros((len(ids), most, T), np.float32)
        mapping[row, which, column] = 1
        labels = np.full((len(ids), most), IGNORED)
        labels[row, which] = inputs["input_ids"][row, column]
        return inputs | {"perm_mask": blocked, "target_mapping": mapping, "labels": labels}

    def targets(self, ids: np.ndarray, able: np.ndarray, lengths: np.ndarray, rng: Rng) -> np.ndarray:
        """Spans; then single tokens up to `predict`, or fewer.  bool [B, T]"""
        T = ids.shape[1]
        begins = np.ones(ids.shape, bool) if self.word_table is None else self.word_table[ids]
        extra = rng.uniform("make up", T)
        found = np.empty(ids.shape, bool)
        blocks = range(0, T, self.block)
        goals = [
            None if self.predict is None else -(-(self.predict - k) // len(blocks))
            for k in range(len(blocks))
        ]
        for number, (start, goal) in enumerate(zip(blocks, goals)):
            here = slice(start, start + self.block)
            inside = np.clip(lengths - start, 0, self.block)
            spans = self.spans(begins[:, here], inside, f" {number}" if number else "", rng) & able[:, here]
            found[:, here] = spans if goal is None else made_up(spans, able[:, here], extra[:, here], goal)
        return found if found.any(1).all() else found | self.one(found, able, rng)

    def spans(self, begins: np.ndarray, lengths: np.ndarray, block: str, rng: Rng) -> np.ndarray:
        """Of one block.  bool [B, T]"""
        T = begins.shape[1]
        most = max(1, T // max(1, self.alpha // self.beta))  # that can fit
        sizes = 1 + rng.pick(self.weights, f"span{block}", most)
        before = rng.below(sizes * self.alpha // self.beta, f"before{block}", most)
        found = np.empty(begins.shape, bool)
        native.mark_spans(
            sizes, before, self.alpha, self.beta, np.ascontiguousarray(begins), np.minimum(lengths, T), found
        )
        return found

    def one(self, found: np.ndarray, able: np.ndarray, rng: Rng) -> np.ndarray:
        """A token for rows that have no target: short ones, where no span fitted."""
        keys = np.where(able, rng.uniform("make up", able.shape[1]), np.inf)
        return (keys == keys.min(1, keepdims=True)) & able & ~found.any(1, keepdims=True)


def made_up(spans: np.ndarray, able: np.ndarray, keys: np.ndarray, count: int) -> np.ndarray:
    """`count` tokens of each row, or as many as are able: those of spans first.  bool [B, T]"""
    keys = np.where(able, keys + ~spans, np.inf)
    order = np.sort(keys, 1)[:, :count]
    limit = np.where(np.isfinite(order), order, -1).max(1, initial=-1)
    return (keys <= limit[:, None]) & able


def spare_one(targets: np.ndarray, plain: np.ndarray, block: np.ndarray) -> None:
    """Where all text of a block is to be predicted, the last of it is not:
    the first in the order would see nothing.

    A later block sees the earlier ones, but one rule for all is simpler.
    """
    if plain.any(1).all() and not block.any():
        return
    for number in range(int(block.max(initial=0)) + 1):
        here = block == number
        full = (targets & here).any(1) & ~(plain & here).any(1)
        for row in np.flatnonzero(full):
            last = np.flatnonzero(targets[row] & here[row])[-1]
            targets[row, last], plain[row, last] = False, True
