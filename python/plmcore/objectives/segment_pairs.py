"""Two segments in one example: does the second follow the first (BERT), are they in order (ALBERT)?"""

from __future__ import annotations

import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.models.labels import NEXT_SENTENCE, SENTENCE_ORDER
from plmcore.objectives import rows
from plmcore.objectives.layout import Format
from plmcore.objectives.masked import Masking
from plmcore.objectives.objective import Objective, check_same_tokenizer, check_share, special_table
from plmcore.objectives.packing import BLOCK
from plmcore.objectives.rng import Rng
from plmcore.objectives.text import Text
from plmcore.runtime import draws

SHORT, PARTNER = 0x73686F7274, 0x706172746E6572  # keep these draws apart
ONE_DOCUMENT = (
    "next-sentence takes text of another document, and the corpus has one alone. In a text file a "
    "blank line ends a document; "
    'documents="line" (the setting data.documents=line) makes one of each line, "file" of each file. A '
    "single document can be learnt "
    "without next sentences: --set objective.name=masked-lm --set model.head=masked-lm"
)
ONE_SENTENCE = (
    "the corpus has no document of two sentences, and segments are made of whole ones. In a text file "
    "a blank line ends a document, and a rule finds the ends of "
    'sentences; sentences="lines" (the setting data.sentences=lines) ends one with each line'
)


class SegmentPairs(Objective):
    """Chunks of at least two sentences of one document that fill an example; where A ends and what B is
    changes with the epoch.

    Together the chunks are the whole text, but for documents of one sentence. A sentence longer than half of
    an example counts as several, so that any two fit and none is cut short; one that is left alone at the end
    of a document comes again with the one before it. One in 1 / `short` chunks is made for a random smaller
    length. Masks as in MaskedLM; masking=False for none.
    """

    def __init__(
        self,
        corpus: Any,
        tokenizer: Any,
        length: int = 128,
        *,
        short: float = 0.1,
        copies: int | None = None,
        masking: bool = True,
        **masks: Any,
    ):
        check_same_tokenizer(corpus, tokenizer)
        self.format = Format(tokenizer, texts=2)
        self.room = length - self.format.specials
        if self.room < 2:
            raise ArgumentError(
                f"length {length} leaves {self.room} tokens for two segments beside "
                f"{self.format.specials} special ones"
            )
        if masks and not masking:
            raise ArgumentError(f"masking=False, but settings of masks: {', '.join(masks)}")
        self.masking = Masking(tokenizer, **masks) if masking else None
        if copies is not None and copies < 1:
            raise ArgumentError(f"copies must be at least 1, got {copies}")
        self.copies = copies
        self.corpus, self.text, self.special = corpus, Text(corpus), special_table(tokenizer)
        self.edges = cut(corpus.sentences, self.room // 2)
        self.documents = np.searchsorted(self.edges, corpus.documents)  # their first sentences
        self.first, self.last = chunks(
            self.edges, self.documents, self.room, check_share("short", short, zero=True)
        )
        if not len(self.first):
            raise ArgumentError(ONE_SENTENCE)

    def examples(self, epoch: int) -> int:
        return len(self.first)

    def lengths(self, epoch: int) -> np.ndarray:
        sizes = self.edges[self.last] - self.edges[self.first]
        return sizes + self.format.specials

    def chunk(self, examples: np.ndarray, rng: Rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sentences first, middle (where B begins) and last (not in it).  each [B]"""
        first, last = (x[examples].astype(np.int64) for x in (self.first, self.last))
        return first, first + 1 + rng.below(last - first - 1, "middle"), last

    def pair(
        self, a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray], rng: Rng
    ) -> dict[str, np.ndarray]:
        """input_ids and, with masks, labels of these runs of sentences (first, last), which fit together."""
        starts = [self.edges[first] for first, _ in (a, b)]
        lengths = [self.edges[last] - self.edges[first] for first, last in (a, b)]
        layout = self.format(*lengths)
        inputs = layout.inputs(*(self.text.take(s, n, self.format.pad) for s, n in zip(starts, lengths)))
        if self.masking is None:
            return inputs
        ids, tokens = inputs["input_ids"], None
        able = layout.within & ~self.special[ids]
        if self.masking.unit == "span":
            numbers = (self.text.tokens(s, n)[0] for s, n in zip(starts, lengths))
            tokens = layout.put(*numbers, fill=-1)
        hidden, labels = self.masking.apply(ids, able, layout.lengths, tokens, rng)
        return inputs | {"input_ids": hidden, "labels": labels}


class NextSentence(SegmentPairs):
    """BERT: B is what follows A (next_sentence_label 0) or, half of the time, text of another document (1).

    Then two chunks of different documents have changed their Bs, so that what is displaced here comes there;
    they are cut where their As are about equally long. Where chance brings chunks of the same document
    together, B is drawn from another one instead.
    """

    labels = NEXT_SENTENCE

    def __init__(self, corpus: Any, tokenizer: Any, length: int = 128, **settings: Any):
        super().__init__(corpus, tokenizer, length, **settings)
        if len(corpus) < 2:
            raise ArgumentError(ONE_DOCUMENT)

    def lengths(self, epoch: int) -> np.ndarray:
        """At most: who changes with whom is known with the seed."""
        return np.full(len(self.first), self.room + self.format.specials)

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        first, middle, last = self.chunk(examples, rng)
        n = len(self.first)
        # Each other's partner.
        partner = (int(draws.bits(rng.seed, rng.epoch, PARTNER) % np.uint64(n)) - examples) % n
        document, other = (
            np.searchsorted(self.documents, self.first[i], side="right") - 1 for i in (examples, partner)
        )
        apart = document != other
        both = Rng(rng.seed, rng.epoch, np.where(apart, np.minimum(examples, partner), examples))
        random = both.uniform("next") < 0.5
        begin, end = np.where(apart, self.exchanged(examples, partner, both), self.elsewhere(document, rng))
        # where its own B begins then
        own = np.where(apart, self.exchanged(partner, examples, both)[0], middle)
        a = first, np.where(random, own, middle)
        b = np.where(random, begin, middle), np.where(random, end, last)
        a, b = self.fitted(a, b)
        return self.pair(a, b, rng) | {"next_sentence_label": random.astype(np.int64)}

    def exchanged(self, mine: np.ndarray, partner: np.ndarray, both: Rng) -> np.ndarray:
        """The partner's B, as sentences (first, last).  [2, B]"""
        lower = np.minimum(mine, partner)
        first, middle, last = self.chunk(lower, both)
        size = self.edges[middle] - self.edges[first]
        start, end = (x[np.maximum(mine, partner)].astype(np.int64) for x in (self.first, self.last))
        near = np.searchsorted(self.edges, self.edges[start] + size)
        near -= 2 * (self.edges[start] + size) < self.edges[near - 1] + self.edges.take(near, mode="clip")
        near = np.clip(near, start + 1, end - 1)
        takes_lower = mine > partner
        return np.stack([np.where(takes_lower, middle, near), np.where(takes_lower, last, end)])

    def elsewhere(self, document: np.ndarray, rng: Rng) -> np.ndarray:
        """A random sentence of another document, and the end of that.  [2, B]"""
        other = rng.below(len(self.corpus) - 1, "document")
        other += other >= document
        begin, end = self.documents[other], self.documents[other + 1]
        return np.stack([begin + rng.below(end - begin, "sentence"), end])

    def fitted(
        self, a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]
    ) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """The same without the last sentences of B and, if its first is still too much, the first of A."""
        edges = self.edges
        room = self.room - (edges[a[1]] - edges[a[0]])
        end = np.searchsorted(edges, edges[b[0]] + room, side="right") - 1
        b = b[0], np.clip(end, b[0] + 1, b[1])
        room = self.room - (edges[b[1]] - edges[b[0]])
        begin = np.searchsorted(edges, edges[a[1]] - room)
        return (np.clip(begin, a[0], a[1] - 1), a[1]), b


class SentenceOrder(SegmentPairs):
    """ALBERT: B follows A (sentence_order_label 0) or, half of the time, the two have changed places (1)."""

    labels = SENTENCE_ORDER

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        first, middle, last = self.chunk(examples, rng)
        swapped = rng.uniform("swap") < 0.5
        a = np.where(swapped, middle, first), np.where(swapped, last, middle)
        b = np.where(swapped, first, middle), np.where(swapped, middle, last)
        return self.pair(a, b, rng) | {"sentence_order_label": swapped.astype(np.int64)}


def cut(sentences: np.ndarray, most: int) -> np.ndarray:
    """The edges of sentences, with further ones inside those of more than `most` tokens, which become equal
    parts as nearly as can be.
    """
    sizes = np.diff(sentences)
    long = np.flatnonzero(sizes > most)
    if not len(long):
        return sentences
    parts = -(-sizes[long] // most)
    inner = rows.ranges(np.ones_like(parts), parts - 1)  # 1, 2, ... in each
    owner = np.repeat(np.arange(len(long)), parts - 1)
    places = sentences[long][owner] + sizes[long][owner] * inner // parts[owner]
    return np.insert(np.asarray(sentences), long[owner] + 1, places)


def chunks(
    edges: np.ndarray, documents: np.ndarray, room: int, short: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """First and last sentences (not in it) of chunks of a document:
    as many as fit into `room` tokens, two at least.

    With probability `short`, drawn for the place in the text, a chunk has a random smaller room. A single
    sentence that is left at the end of a document makes a chunk with the one before it.
    """
    kind = "I" if len(edges) < 1 << 32 else "Q"  # there may be millions
    firsts, lasts = array.array(kind), array.array(kind)
    ends: Iterator[int] = (int(end) for end in documents[1:])
    first = begin = 0
    end = next(ends, 0)
    for block in range(0, len(edges) - 1, BLOCK):
        here = np.arange(block, min(block + BLOCK, len(edges) - 1))
        small = draws.uniform(SHORT, here) < short
        target = np.where(small, 2 + draws.below(room - 1, SHORT, here, 1), room)
        full = (np.searchsorted(edges, edges[here] + target, side="right") - 1).tolist()
        while first < block + len(full):
            while first >= end:
                begin, end = end, next(ends)
            if end - first > 1:
                last = min(max(full[first - block], first + 2), end)
                firsts.append(first)
                lasts.append(last)
            else:
                last = end
                if first > begin:
                    firsts.append(first - 1)
                    lasts.append(last)
            first = last
    found = [np.frombuffer(x, x.typecode) if x else np.zeros(0, kind) for x in (firsts, lasts)]
    return found[0], found[1]
