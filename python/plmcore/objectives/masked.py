from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore._core import text as native
from plmcore.models.labels import PLACE
from plmcore.objectives import choosing
from plmcore.objectives.objective import IGNORED, TextObjective, check_share, need, special_table
from plmcore.objectives.rng import Rng

UNITS = ("token", "word", "ngram", "span")
ROUNDINGS = ("nearest", "random")


class Masking:
    """Chooses what is predicted, and hides it: mask, random token or the token itself, by `shares`.

    unit: "token"; "word" (the tokenizer's word_starts tell); "ngram", 1 to `longest` words with weight 1/n;
        or "span": the marked phrases of `spans` ([n, 2] offsets into corpus.ids, in order) and single words
        elsewhere, all as wholes.
    exact: instead of each unit with probability `rate`, max(1, round(rate * length)) tokens of an example, at
        most `most` (BERT). rounding="random" rounds up as often as the fraction says, and may choose none:
        int(rate * length + u), u uniform (RoBERTa).
    specials: False keeps random tokens from being special ones (RoBERTa); BERT's may be any.
    """

    def __init__(
        self,
        tokenizer: Any,
        rate: float = 0.15,
        shares: Sequence[float] = (0.8, 0.1, 0.1),
        unit: str = "token",
        exact: bool = False,
        most: int | None = None,
        longest: int = 3,
        spans: np.ndarray | None = None,
        rounding: str = "nearest",
        specials: bool = True,
    ):
        if unit not in UNITS:
            raise ArgumentError(f"unit must be one of {', '.join(map(repr, UNITS))}, got {unit!r}")
        if len(shares) != 3 or min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
            raise ArgumentError(
                f"shares must be three numbers (mask, random, same) that add up to 1, got {list(shares)}"
            )
        if (spans is not None) != (unit == "span"):
            raise ArgumentError(
                f"spans go with unit='span', got unit={unit!r} and {'no ' if spans is None else ''}spans"
            )
        if most is not None and not exact:
            raise ArgumentError("most limits the tokens of exact=True")
        if longest < 1:
            raise ArgumentError(f"longest must be at least 1, got {longest}")
        if rounding not in ROUNDINGS:
            raise ArgumentError(f"rounding must be {' or '.join(map(repr, ROUNDINGS))}, got {rounding!r}")
        if rounding != ROUNDINGS[0] and not exact:
            raise ArgumentError("rounding is that of exact=True")
        self.mask, self.rounding = need(tokenizer, "mask", "masking"), rounding
        every = np.arange(tokenizer.vocab_size)
        self.random = every if specials else every[~special_table(tokenizer)[: len(every)]]
        if not len(self.random):
            raise ArgumentError("specials=False, and the tokenizer has special tokens alone")
        self.word_table: Any = None if unit == "token" else np.asarray(tokenizer.word_starts)
        self.rate, self.shares, self.unit, self.exact = check_share("rate", rate), tuple(shares), unit, exact
        self.most, self.longest = most, longest
        self.spans: Any = checked_spans(spans)

    def apply(
        self,
        ids: np.ndarray,
        able: np.ndarray,
        lengths: np.ndarray,
        tokens: np.ndarray | None,
        rng: Rng,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The ids with some hidden, and what those were, IGNORED elsewhere.  both [B, T]

        lengths: of the whole examples, which `rate` is a share of.
        tokens: their numbers in the corpus, for spans.
        """
        if self.unit == "token" and not self.exact:
            u = rng.uniform("choose", ids.shape[1])
            # below the rate a draw is uniform again
            return self.hide(ids, (u < self.rate) & able, u, self.rate)
        chosen = self.choose(ids, able, lengths, tokens, rng)
        return self.hide(ids, chosen, rng.uniform("hide", ids.shape[1]))

    def choose(
        self, ids: np.ndarray, able: np.ndarray, lengths: np.ndarray, tokens: Any, rng: Rng
    ) -> np.ndarray:
        if self.rounding == "nearest":
            counts = np.maximum(1, np.rint(self.rate * lengths)).astype(np.int64)
        else:
            counts = (self.rate * lengths + rng.uniform("count")).astype(np.int64)
        counts = counts if self.most is None else np.minimum(counts, self.most)
        if self.unit == "token":
            return choosing.exact_tokens(able, counts, rng)
        starts = choosing.word_starts(ids, able, self.word_table)
        if self.unit == "ngram":
            starts = choosing.ngram_starts(starts, able, self.longest, rng)
        if self.unit == "span":
            starts = choosing.span_starts(starts, tokens, self.spans) | ~able
        if self.exact:
            return choosing.exact_units(starts, able, counts, rng)
        return choosing.units(starts, able, self.rate, rng)

    def hide(
        self, ids: np.ndarray, chosen: np.ndarray, u: np.ndarray, below: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same for chosen tokens.

        A draw for each, in [0, below), decides what becomes of it and, if that is random, which.  all [B, T]
        """
        hidden, labels = np.empty_like(ids), np.empty_like(ids)
        mask, random, _ = self.shares
        native.hide(ids, chosen, u, below, mask, random, self.mask, self.random, IGNORED, hidden, labels)
        return hidden, labels


class MaskedLM(TextObjective):
    """Some tokens are hidden; the model predicts those: input_ids, labels.

    Masks change every epoch (RoBERTa), or with `copies` every epoch up to that many and then again (10 in
    BERT). The settings of the masks are those of Masking. For `packing` see docs/objectives.md;
    "full-sentences" is RoBERTa's.
    """

    labels = PLACE

    def __init__(
        self,
        corpus: Any,
        tokenizer: Any,
        length: int = 128,
        *,
        packing: str = "full-sentences",
        copies: int | None = None,
        **masking: Any,
    ):
        self.masking = Masking(tokenizer, **masking)
        super().__init__(corpus, tokenizer, length, packing, separator=tokenizer.sep_token_id, copies=copies)

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        ids, lengths, able = self.take(examples)
        tokens = (
            self.packing.text.tokens(*self.packing.runs(examples))[0] if self.masking.unit == "span" else None
        )
        layout = self.format(lengths)
        hidden, labels = self.masking.apply(ids, able, layout.lengths, tokens, rng)
        return layout.inputs(hidden) | {"labels": layout.put(labels, fill=IGNORED)}


def checked_spans(spans: np.ndarray | None) -> np.ndarray | None:
    if spans is None:
        return None
    spans = np.asarray(spans, np.int64)
    if spans.ndim != 2 or spans.shape[1] != 2 or not len(spans):
        raise ArgumentError(f"spans must be [n, 2], got {list(spans.shape)}")
    if (spans[:, 0] >= spans[:, 1]).any() or (spans[1:, 0] < spans[:-1, 1]).any():
        raise ArgumentError("spans must be in order, not empty and not overlapping")
    return spans
