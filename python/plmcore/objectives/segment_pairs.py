"""Two segments of text in one example: does the second follow the first (BERT), are they in order (ALBERT)?"""

from __future__ import annotations

import array
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.models.labels import NEXT_SENTENCE, SENTENCE_ORDER
from plmcore.objectives.chance import Chance
from plmcore.objectives.layout import Format
from plmcore.objectives.masked import Masking
from plmcore.objectives.objective import Objective, check_same_tokenizer, check_share, special_table
from plmcore.objectives.packing import BLOCK
from plmcore.objectives.text import Text

ONE_DOCUMENT = (
    "next-sentence takes text of another document, and the corpus has one alone. In a text file a blank line ends a document; "
    'documents="line" (the setting data.documents=line) makes one of each line, "file" of each file. A single document can be learnt '
    "without next sentences: --set objective.name=masked-lm --set model.head=masked-lm"
)
ONE_SENTENCE = (
    "the corpus has no document of two sentences, and segments are made of whole ones. In a text file a blank line ends a document, and a rule finds the ends of "
    'sentences; sentences="lines" (the setting data.sentences=lines) ends one with each line'
)


class SegmentPairs(Objective):
    """Chunks of at least two sentences of one document that fill an example; where A ends and what B is changes with the epoch.

    With probability `short` an example is made for a random smaller length. A pair that is too long loses tokens of the longer
    segment, at either end. Masks as in MaskedLM; masking=False for none.
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
                f"length {length} leaves {self.room} tokens for two segments beside {self.format.specials} special ones"
            )
        if masks and not masking:
            raise ArgumentError(f"masking=False, but settings of masks: {', '.join(masks)}")
        self.masking = Masking(tokenizer, **masks) if masking else None
        self.short, self.copies = check_share("short", short, zero=True), copies
        self.corpus, self.text, self.special = corpus, Text(corpus), special_table(tokenizer)
        self.first, self.last = chunks(corpus.sentences, corpus.document_sentences, self.room)
        if not len(self.first):
            raise ArgumentError(ONE_SENTENCE)

    def examples(self, epoch: int) -> int:
        return len(self.first)

    def lengths(self, epoch: int) -> np.ndarray:
        """At most: which sentences are taken is known with the seed."""
        return np.full(len(self.first), self.room + self.format.specials)

    def chunk(self, examples: np.ndarray, chance: Chance) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Sentences first, middle (where B begins) and last (not in it), and the tokens aimed at.  each [B]"""
        first, last = (x[examples].astype(np.int64) for x in (self.first, self.last))
        small = chance.uniform("short") < self.short
        target = np.where(small, 2 + chance.below(self.room - 1, "target"), self.room)
        enough = np.searchsorted(
            self.corpus.sentences, self.corpus.sentences[first] + target
        )  # whole sentences up to the target
        last = np.where(small, np.clip(enough, first + 2, last), last)
        return first, first + 1 + chance.below(last - first - 1, "middle"), last, target

    def trim(
        self, start: np.ndarray, end: np.ndarray, cut: np.ndarray, what: str, chance: Chance
    ) -> tuple[np.ndarray, np.ndarray]:
        """Tokens start to end less `cut` of them, each from the front or the back at random."""
        front = chance.heads(cut, what)
        return start + front, end - (cut - front)

    def pair(self, a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray], chance: Chance):
        """input_ids and, with masks, labels of these runs of tokens (start, end), cut to fit."""
        size_a, size_b = a[1] - a[0], b[1] - b[0]
        excess = np.maximum(size_a + size_b - self.room, 0)
        uneven = np.minimum(excess, np.abs(size_a - size_b))  # from the longer; then from both by turns, B first
        rest = excess - uneven
        cut_a = np.where(size_a > size_b, uneven, 0) + rest // 2
        a = self.trim(*a, cut_a, "cut A", chance)
        b = self.trim(*b, excess - cut_a, "cut B", chance)
        lengths = [a[1] - a[0], b[1] - b[0]]
        layout = self.format(*lengths)
        inputs = layout.inputs(*(self.text.take(s, n, self.format.pad) for s, n in zip((a[0], b[0]), lengths)))
        if self.masking is None:
            return inputs
        ids, tokens = inputs["input_ids"], None
        able = layout.within & ~self.special[ids]
        if self.masking.unit == "span":
            numbers = (self.text.tokens(s, n)[0] for s, n in zip((a[0], b[0]), lengths))
            tokens = layout.put(*numbers, fill=-1)
        hidden, labels = self.masking.apply(ids, able, layout.lengths, tokens, chance)
        return inputs | {"input_ids": hidden, "labels": labels}


class NextSentence(SegmentPairs):
    """BERT: B is what follows A (next_sentence_label 0) or, half of the time, text of another document (1)."""

    labels = NEXT_SENTENCE

    def __init__(self, corpus: Any, tokenizer: Any, length: int = 128, **settings: Any):
        super().__init__(corpus, tokenizer, length, **settings)
        if len(corpus) < 2:
            raise ArgumentError(ONE_DOCUMENT)

    def build(self, examples: np.ndarray, chance: Chance) -> dict[str, np.ndarray]:
        first, middle, last, target = self.chunk(examples, chance)
        tokens, documents = self.corpus.sentences, self.corpus.document_sentences
        own = np.searchsorted(documents, first, side="right") - 1
        other = chance.below(len(self.corpus) - 1, "document")
        other += other >= own
        begin, end = documents[other], documents[other + 1]
        begin = begin + chance.below(end - begin, "sentence")
        wanted = np.maximum(target - (tokens[middle] - tokens[first]), 1)
        end = np.minimum(np.searchsorted(tokens, tokens[begin] + wanted), end)
        random = chance.uniform("next") < 0.5
        b = np.where(random, tokens[begin], tokens[middle]), np.where(random, tokens[end], tokens[last])
        return self.pair((tokens[first], tokens[middle]), b, chance) | {"next_sentence_label": random.astype(np.int64)}


class SentenceOrder(SegmentPairs):
    """ALBERT: B follows A (sentence_order_label 0) or, half of the time, the two have changed places (1)."""

    labels = SENTENCE_ORDER

    def lengths(self, epoch: int) -> np.ndarray:
        sizes = self.corpus.sentences[self.last] - self.corpus.sentences[self.first]
        return np.minimum(sizes, self.room) + self.format.specials

    def build(self, examples: np.ndarray, chance: Chance) -> dict[str, np.ndarray]:
        first, middle, last = (self.corpus.sentences[x] for x in self.chunk(examples, chance)[:3])
        swapped = chance.uniform("swap") < 0.5
        a = np.where(swapped, middle, first), np.where(swapped, last, middle)
        b = np.where(swapped, first, middle), np.where(swapped, middle, last)
        return self.pair(a, b, chance) | {"sentence_order_label": swapped.astype(np.int64)}


def chunks(sentences: np.ndarray, documents: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """First and last sentences (not in it) of chunks of a document: until `room` tokens are reached, two sentences at least.

    A single sentence that is left at the end of a document joins the chunk before it.
    """
    kind = "I" if len(sentences) < 1 << 32 else "Q"  # there may be millions
    firsts, lasts = array.array(kind), array.array(kind)
    ends = (int(end) for end in documents[1:])
    first, end = 0, next(ends, 0)
    for block in range(0, len(sentences) - 1, BLOCK):
        here = np.arange(block, min(block + BLOCK, len(sentences) - 1))
        full = np.searchsorted(sentences, sentences[here] + room).tolist()  # after the sentence that reaches `room`
        while first < block + len(full):
            while first >= end:
                end = next(ends)
            last = min(max(full[first - block], first + 2), end)
            last = end if end - last == 1 else last
            if last - first > 1:
                firsts.append(first)
                lasts.append(last)
            first = last
    return tuple(np.frombuffer(x, x.typecode) if x else np.zeros(0, kind) for x in (firsts, lasts))
