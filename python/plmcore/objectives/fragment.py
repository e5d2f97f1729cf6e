from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.models.labels import DECODER
from plmcore.objectives import rows
from plmcore.objectives.masked import Masking
from plmcore.objectives.objective import IGNORED, TextObjective, check_share
from plmcore.objectives.rng import Rng


class Fragment(TextObjective):
    """MASS: the encoder's text lacks a run of tokens;
    the decoder gets those, moved by one, and predicts them.

    The run is `rate` of the text, or of each `block` tokens of it (the published summarisation code:
    block=64, rate=0.15). Hidden tokens become masks, random tokens or stay, by `shares`. labels and
    decoder_input_ids hold the runs alone; decoder_input_ids is the token before each one. positions=True adds
    decoder_position_ids, the place of that token in the encoder's text.
    """

    labels = DECODER

    def __init__(
        self,
        corpus: Any,
        tokenizer: Any,
        length: int = 512,
        *,
        packing: str = "sentences",
        rate: float = 0.5,
        block: int | None = None,
        shares: Sequence[float] = (0.8, 0.1, 0.1),
        positions: bool = False,
        copies: int | None = None,
    ):
        if block is not None and block < 1:
            raise ArgumentError(f"block must be at least 1, got {block}")
        self.masking = Masking(tokenizer, shares=shares)
        self.rate, self.block, self.positions = check_share("rate", rate), block, positions
        super().__init__(corpus, tokenizer, length, packing, separator=tokenizer.sep_token_id, copies=copies)
        known = (
            tokenizer.bos_token_id,
            tokenizer.eos_token_id,
            tokenizer.sep_token_id,
            tokenizer.pad_token_id,
            0,
        )
        self.start = next(i for i in known if i is not None)  # before a fragment that begins the text

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        ids, lengths, able = self.take(examples)
        chosen = self.fragments(lengths, ids.shape[1], rng) & able
        layout = self.format(lengths)
        hidden, _ = self.masking.hide(ids, chosen, rng.uniform("hide", ids.shape[1]))
        inputs = layout.inputs(hidden)
        whole, chosen = layout.ids(ids), layout.put(chosen, fill=0) == 1
        before = np.pad(whole[:, :-1], ((0, 0), (1, 0)), constant_values=self.start)
        labels, counts = rows.compact(whole, chosen, IGNORED)
        batch = inputs | {
            "decoder_input_ids": rows.filled(before[chosen], counts, self.format.pad),
            "labels": labels,
        }
        if self.positions:
            place = np.nonzero(chosen)[1]
            batch["decoder_position_ids"] = rows.filled(np.maximum(place - 1, 0), counts, 0)
        return batch

    def fragments(self, lengths: np.ndarray, width: int, rng: Rng) -> np.ndarray:
        """bool [B, T]"""
        block = max(width, 1) if self.block is None else self.block
        first = np.arange(0, max(width, 1), block)
        sizes = np.clip(lengths[:, None] - first, 0, block)  # [B, blocks]
        runs = np.minimum(np.maximum(1, np.rint(self.rate * sizes).astype(np.int64)), sizes)
        starts = first + rng.below(sizes - runs + 1, "fragment", len(first))
        column = np.arange(width)
        mine = column // block
        return (column >= starts[:, mine]) & (column < (starts + runs)[:, mine])
