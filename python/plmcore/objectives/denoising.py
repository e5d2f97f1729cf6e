"""BART: the text is corrupted, and the model writes the original."""

from __future__ import annotations

from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.models.labels import DECODER
from plmcore.objectives import choosing, rows
from plmcore.objectives.objective import TextObjective, check_share, need
from plmcore.objectives.rng import Rng, poisson

# The five of the paper; "bart" is the mix the published models were trained with.
NOISES: dict[str, dict[str, Any]] = {
    "bart": {"permute_sentences": 1.0, "mask": 0.3},
    "masking": {"mask": 0.3, "span": "token", "replace": -1},
    "deletion": {"mask": 0.3, "span": "token", "replace": 0},
    "infilling": {"mask": 0.3},
    "permutation": {"permute_sentences": 1.0},
    "rotation": {"rotate": 1.0},
}
NONE: dict[str, Any] = {
    "permute_sentences": 0.0,
    "mask": 0.0,
    "span": "poisson",
    "replace": 1,
    "insert": 0.0,
    "rotate": 0.0,
}


class Denoising(TextObjective):
    """input_ids is the corrupted text, labels the original. The noises, in the order of their application:

    permute_sentences: this share of an example's sentences change places. Sentences are the corpus's, or, as
        published, end with the first of one or several `full_stop`, and the others of these begin the next;
        what then has no end of its own at the end of the text stays there.
    mask: this share of the words is hidden in spans.
    span: "poisson" draws lengths in words with mean `mean`; of length 0 is a mask put between words. "word"
        or "token": one each.
    replace: 1 puts one mask for a span, -1 one for each of its tokens, 0 leaves it out.
    random: this share of the masks are random tokens instead.
    insert: so many masks more, as a share of the tokens.
    rotate: with this probability the text begins at a random token, and its beginning follows its end.

    noise: a name of NOISES, whose settings those given here change. The special tokens around the text stay
    in place, and no input is longer than `length`. An example is of one document, as published;
    packing="full-sentences" goes across them.
    """

    labels = DECODER

    def __init__(
        self,
        corpus: Any,
        tokenizer: Any,
        length: int = 512,
        noise: str = "bart",
        *,
        packing: str = "sentences",
        copies: int | None = None,
        mean: float = 3.0,
        random: float = 0.0,
        full_stop: int | None = None,
        permute_sentences: float | None = None,
        mask: float | None = None,
        span: str | None = None,
        replace: int | None = None,
        insert: float | None = None,
        rotate: float | None = None,
    ):
        if noise not in NOISES:
            raise ArgumentError(f"noise must be one of {', '.join(map(repr, NOISES))}, got {noise!r}")
        given: dict[str, Any] = {
            "permute_sentences": permute_sentences,
            "mask": mask,
            "span": span,
            "replace": replace,
            "insert": insert,
            "rotate": rotate,
        }
        settings = NONE | NOISES[noise] | {name: value for name, value in given.items() if value is not None}
        for name in ("permute_sentences", "mask", "insert", "rotate"):
            check_share(name, settings[name], zero=True)
        if settings["span"] not in ("poisson", "word", "token"):
            raise ArgumentError(f"span must be 'poisson', 'word' or 'token', got {settings['span']!r}")
        if settings["replace"] not in (-1, 0, 1):
            raise ArgumentError(f"replace must be 1, 0 or -1, got {settings['replace']}")
        if (
            not 0.1 <= mean <= 100
        ):  # lengths are at most 127; of a tiny mean nearly all are 0, and a row would have millions of them
            raise ArgumentError(f"mean must be from 0.1 to 100, got {mean}")
        self.settings, self.mean, self.random = settings, mean, check_share("random", random, zero=True)
        self.full_stop, self.vocab_size = full_stop, tokenizer.vocab_size
        self.mask = need(tokenizer, "mask", "Denoising") if settings["mask"] or settings["insert"] else 0
        by_word = settings["mask"] and settings["span"] != "token"
        self.word_table = np.asarray(tokenizer.word_starts) if by_word else None
        super().__init__(corpus, tokenizer, length, packing, separator=tokenizer.eos_token_id, copies=copies)
        self.room = length - self.format.specials

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        ids, lengths, able = self.take(examples)
        labels = self.format(lengths).labels(ids)
        settings = self.settings
        if settings["permute_sentences"]:
            starts, fixed = self.sentences(examples, ids, lengths)
            ids, able = self.permute_sentences(ids, able, lengths, starts, fixed, rng)
        if settings["mask"]:
            ids, lengths = self.hide(ids, able, lengths, rng)
        if settings["insert"]:
            counts = np.ceil(settings["insert"] * (lengths + self.format.specials)).astype(np.int64)
            ids, lengths = self.insert(ids, lengths, counts, "insert", rng)
        if settings["rotate"]:
            ids = self.rotate(ids, lengths, rng)
        return self.format(lengths).inputs(ids) | {"labels": labels}

    def sentences(
        self, examples: np.ndarray, ids: np.ndarray, lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Where sentences begin, bool [B, T], and whether the last of a row is none
        and stays where it is, [B].
        """
        if self.full_stop is None:
            return self.packing.text.sentence_starts(*self.packing.runs(examples)), np.zeros(len(ids), bool)
        inside = rows.inside(lengths, ids.shape[1])
        stops = (ids == self.full_stop) & inside
        ends = stops.copy()
        ends[:, 1:] &= ~stops[:, :-1]  # the first of several
        starts = np.zeros(ids.shape, bool)
        starts[:, 1:] = ends[:, :-1]
        starts[:, 0] = True
        starts &= inside
        last = np.maximum(lengths - 1, 0)
        after_stop = (lengths > 1) & np.take_along_axis(stops, np.maximum(last - 1, 0)[:, None], 1)[:, 0]
        return starts, after_stop  # the end of the text ends a sentence, unless a stop stands before it

    def permute_sentences(
        self,
        ids: np.ndarray,
        able: np.ndarray,
        lengths: np.ndarray,
        starts: np.ndarray,
        fixed: np.ndarray,
        rng: Rng,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The sentences of each row in a random order."""
        sentence, T = choosing.number(starts), ids.shape[1]
        n = starts.sum(1) - fixed
        moved = rows.smallest(
            np.where(rows.inside(n, T), rng.uniform("which sentences", T), np.inf),
            np.ceil(n * self.settings["permute_sentences"]).astype(np.int64),
        )
        # Those that move stand in their places in the order of new keys.
        places = np.argsort(np.where(moved, np.arange(T), T + np.arange(T)), axis=1)
        order = rows.shuffled(rng.uniform("sentence order", T), moved.sum(1))
        new = np.broadcast_to(np.arange(T), ids.shape).copy()  # sentence -> where it goes
        np.put_along_axis(new, places, np.take_along_axis(places, order, 1), 1)
        key = np.take_along_axis(new, sentence, 1)
        key[~rows.inside(lengths, T)] = T
        by_place = np.argsort(key, axis=1, kind="stable")
        return np.take_along_axis(ids, by_place, 1), np.take_along_axis(able, by_place, 1)

    def hide(
        self, ids: np.ndarray, able: np.ndarray, lengths: np.ndarray, rng: Rng
    ) -> tuple[np.ndarray, np.ndarray]:
        """Spans of words, which may overlap; overlapping ones are one."""
        T, replace = ids.shape[1], self.settings["replace"]
        starts = able if self.word_table is None else self.word_table[ids] & able
        words = starts.sum(1)
        budget = np.ceil(words * self.settings["mask"]).astype(np.int64)
        inserted = np.zeros_like(budget)
        if self.settings["span"] == "poisson":
            sizes, inserted = self.span_sizes(budget, rng)  # [B, K]
        else:
            sizes = rows.inside(budget).astype(np.int64)
        # The first tokens of spans: random words, the k-th for the k-th span.
        order = rows.shuffled(rng.uniform("span starts", T), words)[:, : sizes.shape[1]]  # words by number
        edges = np.zeros((len(ids), T + 1), np.int64)
        row, k = np.nonzero(sizes)
        word = order[row, k]
        first = np.zeros((len(ids), T + 1), bool)
        first[row, word] = True
        np.add.at(edges, (row, np.minimum(word + 1, T)), 1)  # words covered beside the first one
        np.add.at(edges, (row, np.minimum(word + sizes[row, k], T)), -1)
        covered = np.cumsum(edges, 1) > 0
        # of each token; T before the first
        word = np.where(np.cumsum(starts, 1) > 0, np.cumsum(starts, 1) - 1, T)
        hidden = np.take_along_axis(first, word, 1) & starts & ~np.take_along_axis(covered, word, 1)
        rest = (np.take_along_axis(first | covered, word, 1)) & able & ~hidden
        if replace == -1:
            hidden, rest = hidden | rest, np.zeros_like(rest)
        out = ids.copy()
        out[hidden] = self.masks(np.nonzero(hidden), "hidden", rng)
        gone = rest | hidden if replace == 0 else rest
        out, lengths = rows.compact(out, rows.inside(lengths, T) & ~gone, self.format.pad)
        return self.insert(out, lengths, inserted, "between", rng) if inserted.any() else (out, lengths)

    def span_sizes(self, budget: np.ndarray, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
        """Poisson lengths until they add up to the budget, the last cut to it:
        those above 0, and how many are 0.
        """
        columns = max(8, int(2 * budget.max(initial=1) / self.mean))
        while True:
            sizes = rng.pick(poisson(self.mean, 0, 127), "span sizes", columns).astype(np.int64)
            sums = np.cumsum(sizes, 1)
            if (sums[:, -1] >= budget).all():
                break
            columns *= 2
        before = sums - sizes
        used = before < budget[:, None]
        sizes = np.where(used, np.minimum(sizes, budget[:, None] - before), 0)
        inserted = (used & (sizes == 0)).sum(1)
        return rows.compact(sizes, sizes > 0, 0)[0], inserted

    def insert(
        self, ids: np.ndarray, lengths: np.ndarray, counts: np.ndarray, what: str, rng: Rng
    ) -> tuple[np.ndarray, np.ndarray]:
        """`counts` masks at random places between the tokens, as far as there is room for them."""
        counts = np.minimum(counts, self.room - lengths)
        total = lengths + counts
        width = int(total.max(initial=0))
        new = rows.smallest(np.where(rows.inside(total, width), rng.uniform(what, width), np.inf), counts)
        old = rows.inside(total, width) & ~new
        out = np.full(new.shape, self.format.pad, np.int64)
        out[old] = ids[rows.inside(lengths, ids.shape[1])]
        out[new] = self.masks(np.nonzero(new), f"{what} what", rng)
        return out, total

    def masks(self, at: tuple[np.ndarray, ...], what: str, rng: Rng) -> np.ndarray | int:
        """What takes the place of hidden tokens: the mask, or with probability `random` any token."""
        if not self.random:
            return self.mask
        u = rng.at(what, *at)
        return np.where(u < self.random, (u / self.random * self.vocab_size).astype(np.int64), self.mask)

    def rotate(self, ids: np.ndarray, lengths: np.ndarray, rng: Rng) -> np.ndarray:
        """Rows that begin at a random token."""
        turned = rng.uniform("rotate") < self.settings["rotate"]
        offset = np.where(turned, rng.below(np.maximum(lengths, 1), "offset"), 0)[:, None]
        columns = np.arange(ids.shape[1])
        n = np.maximum(lengths, 1)[:, None]
        source = np.where(columns < n, (columns + offset) % n, columns)
        return np.take_along_axis(ids, source, 1)
