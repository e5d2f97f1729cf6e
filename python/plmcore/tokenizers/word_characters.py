"""Words as the bytes of their characters, the input of ELMo: no word is out of vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from plmcore.tokenizers import guard
from plmcore.tokenizers.batch import Batch

# Above the 256 bytes. In arrays every id is one more, and 0 is what is not there.
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, PADDING = 256, 257, 258, 259, 260


class WordCharacters:
    """input_ids [B, T, width]: a word is its start, at most width - 2 bytes of UTF-8, its end, and padding. `vocab_size` ids."""

    vocab_size = 262

    def __init__(self, width: int = 50):
        self.width = width

    def __call__(
        self,
        text: str | Sequence[str] | Sequence[Sequence[str]],
        *,
        add_special_tokens: bool = True,
        words: bool = False,
    ) -> Batch:
        """Of one text or several, split at white space; words=True: of lists of words. Special are the first and last word of a sentence."""
        one = isinstance(text, str) or (words and len(text) > 0 and isinstance(text[0], str))
        texts = [text] if one else list(text)
        rows = [list(t) if words else t.split() for t in texts]
        known = list(dict.fromkeys(word for row in rows for word in row))
        table = np.concatenate([self.encode(known), [self._word([SENTENCE_START]), self._word([SENTENCE_END])]])
        place = {word: i for i, word in enumerate(known)}
        around = 1 if add_special_tokens else 0
        lengths = [len(row) + 2 * around for row in rows]
        B, T = len(rows), max(lengths, default=0)
        ids, mask = np.zeros((B, T, self.width), np.int64), np.zeros((B, T), np.int64)
        for r, row in enumerate(rows):
            at = [place[word] for word in row]
            if around:
                at = [len(known), *at, len(known) + 1]
            ids[r, : len(at)] = table[at]
            mask[r, : len(at)] = 1
        arrays = {"input_ids": ids, "attention_mask": mask}
        sample = np.arange(B)
        return Batch({name: x[0] for name, x in arrays.items()} if one else arrays, sample, dict)

    def encode(self, words: Iterable[str]) -> np.ndarray:
        """The ids of words.  int64 [n, width]"""
        words = list(words)
        with guard.encoding(words):
            spelled = [word.encode()[: self.width - 2] for word in words]
        rows = [self._word(np.frombuffer(s, np.uint8)) for s in spelled]
        return np.stack(rows) if rows else np.zeros((0, self.width), np.int64)

    def _word(self, characters: Sequence[int]) -> np.ndarray:
        n = len(characters)
        row = np.full(self.width, PADDING, np.int64)
        row[0], row[1 : n + 1], row[n + 1] = WORD_START, characters, WORD_END
        return row + 1

    def decode(self, ids: np.ndarray) -> str | list[str]:
        """Words with spaces between, of ids [T, width] or [B, T, width]."""
        ids = np.asarray(ids)
        if ids.ndim == 3:
            return [self.decode(row) for row in ids]
        words = [bytes((row[(row >= 1) & (row <= 256)] - 1).astype(np.uint8)).decode("utf-8", "replace") for row in ids]
        return " ".join(word for word in words if word)
