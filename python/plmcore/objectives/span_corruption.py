from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.models.labels import DECODER
from plmcore.objectives import rows
from plmcore.objectives.objective import TextObjective
from plmcore.objectives.rng import Rng


class SpanCorruption(TextObjective):
    """T5: spans of the text are each replaced by a sentinel;
    labels has the sentinels, each followed by its span.

    `rate` of the tokens are in spans of `mean` tokens on average; text and spans alternate, text first, with
    lengths drawn so that every way to cut is equally likely. `length` is that of the input, with the end
    token: 512 takes 568 tokens of text, and labels are 114. final=True ends labels with one more sentinel, as
    the paper's figure does and its code does not. sentinels: ids, by default those of <extra_id_0>,
    <extra_id_1>, ...
    """

    labels = DECODER

    def __init__(
        self,
        corpus: Any,
        tokenizer: Any,
        length: int = 512,
        *,
        packing: str = "windows",
        rate: float = 0.15,
        mean: float = 3.0,
        final: bool = False,
        sentinels: Sequence[int] | None = None,
        copies: int | None = None,
    ):
        if not 0 < rate < 1:
            raise ArgumentError(f"rate must be between 0 and 1, got {rate}")
        if not mean >= 1:
            raise ArgumentError(f"mean must be at least 1, got {mean}")
        self.rate, self.mean, self.final = rate, mean, final
        self.sentinels = np.asarray(sentinels_of(tokenizer) if sentinels is None else sentinels, np.int64)
        raw, _ = raw_length(length, rate, mean)
        super().__init__(corpus, tokenizer, length, packing, copies=copies, body=raw)
        needed = int(self.counts(np.array([raw]))[1][0]) + final
        if needed > len(self.sentinels):
            raise ArgumentError(
                f"{raw} tokens of text have {needed} spans, and there are {len(self.sentinels)} "
                f"sentinels; take a smaller length or rate"
            )

    def lengths(self, epoch: int) -> np.ndarray | None:
        lengths = self.packing.lengths()
        if lengths is None:
            return None
        noise, spans = self.counts(lengths)
        return lengths - noise + spans + self.format.specials

    def counts(self, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tokens in spans, and spans, of texts of these lengths."""
        noise = np.clip(np.rint(lengths * self.rate).astype(np.int64), 1, np.maximum(lengths - 1, 1))
        spans = np.maximum(1, np.rint(noise / self.mean).astype(np.int64))
        return noise, np.minimum(spans, np.maximum(1, lengths - noise))

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        starts, lengths = self.packing.runs(examples)
        ids = self.packing.text.take(starts, lengths, self.format.pad)
        part = self.parts(lengths, rng)
        hidden, first = part % 2 == 1, np.zeros(ids.shape, bool)
        hidden &= rows.inside(lengths)
        first[:, 1:] = hidden[:, 1:] & (part[:, 1:] != part[:, :-1])
        first[:, 0] = hidden[:, 0]
        sentinel = self.sentinels.take(part // 2, mode="clip")

        seen, seen_lengths = rows.compact(
            np.where(first, sentinel, ids), rows.inside(lengths) & (~hidden | first), self.format.pad
        )
        both, keep = np.stack([sentinel, ids], 2), np.stack([first, hidden], 2)  # [B, T, 2]
        both, keep = both.reshape(len(ids), -1), keep.reshape(len(ids), -1)
        if self.final:
            both = np.hstack([both, self.sentinels[self.counts(lengths)[1]][:, None]])
            keep = np.hstack([keep, np.ones((len(ids), 1), bool)])
        target, target_lengths = rows.compact(both, keep, self.format.pad)
        return self.format(seen_lengths).inputs(seen) | {"labels": self.format(target_lengths).labels(target)}

    def parts(self, lengths: np.ndarray, rng: Rng) -> np.ndarray:
        """The part of each token: even ones are text, odd ones hidden.  int64 [B, T]"""
        noise, spans = self.counts(lengths)
        sizes = [
            rows.composition(n, spans, rng.uniform(what, max(int(n.max(initial=0)) - 1, 0)))
            for n, what in ((lengths - noise, "text"), (noise, "spans"))
        ]
        ends = np.cumsum(np.stack(sizes, 2).reshape(len(lengths), -1), 1)  # text, span, text, span ...
        T = int(lengths.max(initial=0))
        starts = np.zeros((len(lengths), T + 1), np.int64)
        np.add.at(starts, (np.arange(len(lengths))[:, None], ends[:, :-1]), 1)
        return np.cumsum(starts, 1)[:, :T]


def raw_length(length: int, rate: float = 0.15, mean: float = 3.0) -> tuple[int, int]:
    """How much text an input of `length` takes, and the length of its target; both with the end token."""

    def lengths(raw: int) -> tuple[int, int]:
        noise = round(raw * rate)
        spans = round(noise / mean)
        return raw - noise + spans + 1, noise + spans + 1

    raw = length
    while lengths(raw + 1)[0] <= length:
        raw += 1
    while raw > 1 and lengths(raw)[0] > length:
        raw -= 1
    return raw, lengths(raw)[1]


def sentinels_of(tokenizer: Any) -> list[int]:
    found: list[int] = []
    while (i := tokenizer.id_of(f"<extra_id_{len(found)}>")) is not None:
        found.append(i)
    if not found:
        raise ArgumentError(
            "SpanCorruption needs sentinels, and this tokenizer has no <extra_id_0>; pass sentinels="
        )
    return found
