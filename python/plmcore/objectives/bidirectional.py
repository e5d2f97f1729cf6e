from __future__ import annotations

from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.models import spelling
from plmcore.models.labels import BIDIRECTIONAL, DIRECTIONS
from plmcore.objectives.objective import IGNORED, TextObjective
from plmcore.objectives.packing import Windows
from plmcore.objectives.rng import Rng


class BidirectionalLM(TextObjective):
    """Each token is predicted from those before it and, apart, from those after it: labels of the next and of
    the previous token.

    Sentences have the family's begin and end tokens around them (ELMo), which are predicted as well.
    `streams` is for models that carry a state from batch to batch: the text is cut into so many parts, and a
    batch has the next `length` places of each, whatever the sentences; 0 is none. The second direction then
    has a text of its own, backward_input_ids: the same sentences, each read from its end, so that both
    directions know as much. `characters`: input_ids are words spelled with so many bytes, [B, T, characters].
    `words`: labels are those of the first so many ids, others are unknown words.
    """

    labels = BIDIRECTIONAL

    def __init__(
        self,
        corpus: Any,
        tokenizer: Any,
        length: int = 128,
        *,
        packing: str = "sentences",
        streams: int | None = None,
        characters: int | None = None,
        words: int | None = None,
    ):
        streams = streams or None
        body = None if streams is None else length
        super().__init__(corpus, tokenizer, length, packing, separator=tokenizer.eos_token_id, body=body)
        self.streams, self.words = streams, words
        self.table = None if characters is None else spelled(tokenizer, characters)
        if words is not None and (tokenizer.unk_token_id is None or words <= tokenizer.unk_token_id):
            raise ArgumentError(f"words must leave an id for those that are unknown, got {words}")
        if streams is not None:
            self.text = Sentences(corpus, *edges_of(tokenizer))
            self.packing = Windows(self.text, length, None, streams)

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        batch = self.sentences(examples) if self.streams is None else self.windows(examples)
        if self.words is not None:
            for name in DIRECTIONS:
                batch[name][batch[name] >= self.words] = self.tokenizer.unk_token_id
        if self.table is not None:
            names = [name for name in batch if name.endswith("input_ids")]
            batch |= {name: self.table[batch[name]].astype(np.int64) for name in names}
            if "attention_mask" in batch:
                batch["input_ids"][batch["attention_mask"] == 0] = 0
        return batch

    def sentences(self, examples: np.ndarray) -> dict[str, np.ndarray]:
        """Texts of their own, padded."""
        starts, lengths = self.packing.runs(examples)
        layout = self.format(lengths)
        inputs = layout.inputs(self.packing.text.take(starts, lengths, self.format.pad))
        ids, real = inputs["input_ids"], layout.attention_mask == 1
        both = real[:, 1:] & real[:, :-1]
        forward, backward = np.full_like(ids, IGNORED), np.full_like(ids, IGNORED)
        forward[:, :-1][both] = ids[:, 1:][both]
        backward[:, 1:][both] = ids[:, :-1][both]
        return inputs | {"forward_labels": forward, "backward_labels": backward}

    def windows(self, examples: np.ndarray) -> dict[str, np.ndarray]:
        """The next words of each stream, in both directions."""
        places = self.packing.runs(examples)[0][:, None] + np.arange(self.packing.length)  # [B, T]
        read, following = self.text.forward(places)
        back, before = self.text.backward(places[:, ::-1])  # the last column is read first
        return {
            "input_ids": read,
            "attention_mask": np.ones_like(read),
            "backward_input_ids": back,
            "forward_labels": following,
            "backward_labels": before,
        }


class Sentences:
    """The sentences of a corpus on end, each n tokens of n + 1 places: what is read at a place, and what is
    predicted there.

    Forward: begin, first, ..., last are read, and first, ..., last, end are predicted. Backward: end, last,
    ..., first, and last, ..., first, begin.
    """

    def __init__(self, corpus: Any, begin: int, end: int):
        self.corpus, self.begin, self.end = corpus, begin, end
        self.starts = corpus.sentences + np.arange(len(corpus.sentences))
        self.size = int(self.starts[-1])

    def forward(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tokens and labels.  int64, like places, each"""
        first, last, n = self._sentence(places)
        read = np.where(n == 0, self.begin, self._token(first + n - 1))
        return read, np.where(first + n == last, self.end, self._token(first + n))

    def backward(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first, last, n = self._sentence(places)
        read = np.where(n == 0, self.end, self._token(last - n))
        return read, np.where(last - n == first, self.begin, self._token(last - n - 1))

    def _sentence(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the sentence of a place begins and ends in the corpus, and the number of the place in it."""
        number = np.searchsorted(self.starts, places, side="right") - 1
        offsets = self.corpus.sentences
        return offsets[number], offsets[number + 1], places - self.starts[number]

    def _token(self, at: np.ndarray) -> np.ndarray:
        return np.asarray(self.corpus.ids[np.clip(at, 0, len(self.corpus.ids) - 1)], np.int64)


def edges_of(tokenizer: Any) -> tuple[int, int]:
    begin, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    if begin is None or end is None:
        raise ArgumentError("streams of sentences need a tokenizer with a begin and an end token")
    return begin, end


def spelled(tokenizer: Any, width: int) -> np.ndarray:
    """The characters of each token of a vocabulary of words.  uint16 [V, width]"""
    if width < spelling.LEAST:
        raise ArgumentError(f"characters must be at least {spelling.LEAST}, got {width}")
    table = spelling.spelled([tokenizer.token_of(i) or "" for i in range(tokenizer.vocab_size)], width)
    for id, row in zip((tokenizer.bos_token_id, tokenizer.eos_token_id), spelling.edges(width)):
        if id is not None:
            table[id] = row
    return table.astype(np.uint16)
