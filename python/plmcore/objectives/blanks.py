from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.models.labels import BLANKS
from plmcore.objectives import choosing, rows
from plmcore.objectives.objective import IGNORED, TextObjective, check_share
from plmcore.objectives.rng import Rng, poisson

MODES = ("token", "sentence", "document")
MASKS = ("[MASK]", "[sMASK]", "[gMASK]")


class BlankInfilling(TextObjective):
    """GLM: spans are blanked out, and written after the text, in random order,
    each token from what is before it.

    input_ids is the text with a mask for each span, then for each span the start-of-piece token and the span;
    labels has the span and the end-of-piece token there, in the places where they are predicted (the model
    moves nothing). position_ids of a span are the place of its mask, block_position_ids count 1, 2, ... in it
    and are 0 in the text. source_lengths [B]: up to there all see all. input_ids is longer than `length`, by
    about two tokens for each span; positions are not.

    Each example is in one mode, with the given weights: "token": spans of 1 to 39 tokens, Poisson with mean
    `mean`, until `rate` of the text; "sentence": whole sentences, likewise; "document": one from the middle
    or before to the end.
    """

    labels = BLANKS

    def __init__(
        self,
        corpus: Any,
        tokenizer: Any,
        length: int = 512,
        *,
        packing: str = "sentences",
        modes: Sequence[float] = (1.0, 0.0, 0.0),
        rate: float = 0.15,
        mean: float = 3.0,
        longest: int = 39,
        masks: Sequence[int] | None = None,
        start: int | None = None,
        end: int | None = None,
        copies: int | None = None,
    ):
        if len(modes) != 3 or min(modes) < 0 or not sum(modes) > 0:
            raise ArgumentError(f"modes must be three weights ({', '.join(MODES)}), got {list(modes)}")
        if not mean > 0 or longest < 1:
            raise ArgumentError(f"mean must be above 0 and longest at least 1, got {mean} and {longest}")
        self.modes, self.rate = tuple(modes), check_share("rate", rate)
        self.mean, self.longest = mean, longest
        found = [tokenizer.id_of(t) for t, w in zip(MASKS, modes)] if masks is None else list(masks)
        self.start = tokenizer.id_of("<|startofpiece|>") if start is None else start
        self.end = tokenizer.id_of("<|endofpiece|>") if end is None else end
        named = {"<|startofpiece|>": self.start, "<|endofpiece|>": self.end}
        named |= {token: i for token, i, weight in zip(MASKS, found, modes) if weight}
        missing = [token for token, i in named.items() if i is None]
        if missing:
            raise ArgumentError(
                f"BlankInfilling needs {', '.join(missing)}, and this tokenizer has none; pass the ids"
            )
        self.masks = np.array([0 if i is None else i for i in found])
        super().__init__(corpus, tokenizer, length, packing, separator=tokenizer.sep_token_id, copies=copies)

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        ids, lengths, _ = self.take(examples)
        B, T = ids.shape
        mode = rng.pick(self.modes, "mode")
        starts, sizes = self.spans(examples, lengths, mode, rng)  # [B, K], by start; 0 beyond the last
        spans = np.count_nonzero(sizes, axis=1)

        # Part A: a mask for the first token of each span, the rest of it left out.
        real = rows.inside(spans, sizes.shape[1])
        row, k = np.nonzero(real)
        within = np.zeros((B, T + 1), np.int64)
        within[row, starts[row, k]] += 1
        np.add.at(within, (row, (starts + sizes)[row, k]), -1)
        hidden = np.cumsum(within, 1)[:, :T] > 0
        first = np.zeros((B, T), bool)
        first[row, starts[row, k]] = True
        text = np.where(first, self.masks[mode][:, None], ids)
        text, text_lengths = rows.compact(text, rows.inside(lengths) & (~hidden | first), self.format.pad)
        layout = self.format(text_lengths)
        a, a_lengths = layout.ids(text)[layout.attention_mask == 1], layout.lengths

        # Part B: spans in random order, with a start token each; what they predict ends with an end token.
        place = starts - (np.cumsum(sizes, 1) - sizes) + np.arange(sizes.shape[1]) + len(self.format.fixed[0])
        order = rows.shuffled(rng.uniform("order", sizes.shape[1]), spans)
        # [spans of all]
        begin, size, place = (np.take_along_axis(x, order, 1)[real] for x in (starts, sizes, place))
        at = rows.ranges(np.zeros_like(size), size + 1)  # 0 for the start token, 1, 2, ...
        token = np.repeat(begin, size + 1) + at
        owner = np.repeat(row, size + 1)
        b = np.where(at == 0, self.start, ids[owner, token - 1])
        answer = np.where(at == np.repeat(size, size + 1), self.end, ids[owner, np.minimum(token, T - 1)])
        b_lengths = np.bincount(owner, minlength=B)

        total = a_lengths + b_lengths
        in_a, everything = rows.inside(a_lengths, int(total.max())), rows.inside(total)
        in_b = everything & ~in_a

        def joined(part_a: Any, part_b: Any, fill: int) -> np.ndarray:
            out = np.full(everything.shape, fill, np.int64)
            out[in_a], out[in_b] = part_a, part_b
            return out

        return {
            "input_ids": joined(a, b, self.format.pad),
            "attention_mask": everything.astype(np.int64),
            "position_ids": joined(
                rows.ranges(np.zeros_like(a_lengths), a_lengths), np.repeat(place, size + 1), 0
            ),
            "block_position_ids": joined(0, at + 1, 0),
            "source_lengths": a_lengths,
            "labels": joined(IGNORED, answer, IGNORED),
        }

    def spans(
        self, examples: np.ndarray, lengths: np.ndarray, mode: np.ndarray, rng: Rng
    ) -> tuple[np.ndarray, np.ndarray]:
        """starts and sizes [B, K], in the order of the text."""
        made = []
        for number, make in enumerate((self.token_spans, self.sentence_spans, self.document_spans)):
            mine = np.flatnonzero(mode == number)
            if len(mine):
                made.append((mine, *make(examples[mine], lengths[mine], rng.part(mine))))
        starts = np.zeros((len(examples), max(sizes.shape[1] for _, _, sizes in made)), np.int64)
        sizes = np.zeros_like(starts)
        for mine, s, n in made:
            starts[mine, : s.shape[1]], sizes[mine, : n.shape[1]] = s, n
        return starts, sizes

    def token_spans(
        self, examples: np.ndarray, lengths: np.ndarray, rng: Rng
    ) -> tuple[np.ndarray, np.ndarray]:
        """Spans of 1 to 39 tokens, until `rate` of the tokens is hidden."""
        budget = np.maximum(1, (self.rate * lengths).astype(np.int64))
        columns = int(budget.max())  # each is one token at least
        sizes = 1 + rng.pick(poisson(self.mean, 1, self.longest), "sizes", columns)
        before = np.cumsum(sizes, 1) - sizes
        used = before < budget[:, None]
        count = used.sum(1)
        # The last may go beyond the budget, but the text must hold all with a token between each two.
        room = np.maximum(1, lengths[:, None] - before - (count - 1)[:, None])
        sizes = np.where(used, np.minimum(sizes, room), 0)
        sizes = np.take_along_axis(sizes, rows.shuffled(rng.uniform("shuffle", columns), count), 1)
        free = lengths - sizes.sum(1) - (count - 1)  # places before, between and after beyond the one token
        gaps = np.where(
            used, rng.below(np.maximum(free, 0)[:, None] + 1, "places", columns), np.iinfo(np.int64).max
        )
        gaps = np.sort(gaps, 1)
        starts = np.where(used, gaps + np.cumsum(sizes, 1) - sizes + np.arange(columns), 0)
        return starts, sizes

    def sentence_spans(
        self, examples: np.ndarray, lengths: np.ndarray, rng: Rng
    ) -> tuple[np.ndarray, np.ndarray]:
        """Whole sentences."""
        begins = self.packing.text.sentence_starts(*self.packing.runs(examples))
        T = begins.shape[1]
        sizes = rows.counted(choosing.number(begins), rows.inside(lengths), T)  # by sentence
        starts = np.cumsum(sizes, 1) - sizes
        budget = np.maximum(1, (self.rate * lengths).astype(np.int64))
        order = rows.shuffled(rng.uniform("sentences", T), begins.sum(1))
        in_order = np.take_along_axis(sizes, order, 1)
        taken = (np.cumsum(in_order, 1) - in_order < budget[:, None]) & (in_order > 0)
        chosen = np.zeros(begins.shape, bool)
        np.put_along_axis(chosen, order, taken, 1)
        return rows.compact(starts, chosen, 0)[0], rows.compact(sizes, chosen, 0)[0]

    def document_spans(
        self, examples: np.ndarray, lengths: np.ndarray, rng: Rng
    ) -> tuple[np.ndarray, np.ndarray]:
        """One span to the end of the text."""
        half = -(-lengths // 2)
        sizes = half + rng.below(lengths - half + 1, "suffix")
        return (lengths - sizes)[:, None], sizes[:, None]
