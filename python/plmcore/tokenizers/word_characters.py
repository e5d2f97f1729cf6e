"""Words as their characters, the input of ELMo and of Cross-View Training: no word is out of vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from plmcore.tokenizers import guard
from plmcore.tokenizers.batch import MISSING, Batch

# ELMo's, above the 256 bytes. In arrays every id is one more, and 0 is what is not there.
SENTENCE_START, SENTENCE_END, WORD_START, WORD_END, PADDING = 256, 257, 258, 259, 260


class Spelling:
    """Words as rows of ids.

    A kind of spelling has `encode`, words to rows, and `edges`, the rows of the words around a sentence.
    """

    def encode(self, words: Iterable[str]) -> np.ndarray:
        """The ids of words.  int64 [n, width]"""
        raise NotImplementedError

    def edges(self, width: int) -> np.ndarray:
        """int64 [2, width]"""
        raise NotImplementedError

    def prepared(self, words: Sequence[str]) -> list[str]:
        """The words of a sentence as they are spelled."""
        return list(words)

    def __call__(
        self,
        text: str | Sequence[str] | Sequence[Sequence[str]],
        *,
        add_special_tokens: bool = True,
        words: bool = False,
    ) -> Batch:
        """input_ids [B, T, width] of one text or several, split at white space;
        words=True: of lists of words.

        Special are the first and last word of a sentence.
        """
        one = isinstance(text, str) or (words and len(text) > 0 and isinstance(text[0], str))
        sentences: Sequence[Any] = [text] if one else text
        rows = [self.prepared(t if words else t.split()) for t in sentences]
        known = list(dict.fromkeys(word for row in rows for word in row))
        table = self.encode(known)
        width = table.shape[1]
        table = np.concatenate([table, self.edges(width)])
        place = {word: i for i, word in enumerate(known)}
        around = 1 if add_special_tokens else 0
        B, T = len(rows), max((len(row) + 2 * around for row in rows), default=0)
        ids, mask = np.zeros((B, T, width), np.int64), np.zeros((B, T), np.int64)
        for r, row in enumerate(rows):
            at = [place[word] for word in row]
            if around:
                at = [len(known), *at, len(known) + 1]
            ids[r, : len(at)] = table[at]
            mask[r, : len(at)] = 1
        arrays = {"input_ids": ids, "attention_mask": mask}
        return Batch({name: x[0] for name, x in arrays.items()} if one else arrays, np.arange(B), dict)

    def decode(self, ids: np.ndarray) -> str | list[str]:
        """Words with spaces between, of ids [T, width] or [B, T, width]."""
        ids = np.asarray(ids)
        if ids.ndim == 3:
            return [" ".join(filter(None, map(self.decoded_word, row))) for row in ids]
        return " ".join(filter(None, map(self.decoded_word, ids)))

    def decoded_word(self, ids: np.ndarray) -> str:
        raise NotImplementedError


class WordCharacters(Spelling):
    """ELMo's input_ids [B, T, width]: a word is its start, at most width - 2 bytes of UTF-8,
    its end, and padding.

    `vocab_size` ids.
    """

    vocab_size = 262

    def __init__(self, width: int = 50):
        self.width = width

    def encode(self, words: Iterable[str]) -> np.ndarray:
        words = list(words)
        with guard.encoding(words):
            spelled = [word.encode()[: self.width - 2] for word in words]
        rows = [self._word(np.frombuffer(s, np.uint8).tolist()) for s in spelled]
        return np.stack(rows) if rows else np.zeros((0, self.width), np.int64)

    def edges(self, width: int) -> np.ndarray:
        return np.stack([self._word([SENTENCE_START]), self._word([SENTENCE_END])])

    def _word(self, characters: Sequence[int]) -> np.ndarray:
        n = len(characters)
        row = np.full(self.width, PADDING, np.int64)
        row[0], row[1 : n + 1], row[n + 1] = WORD_START, characters, WORD_END
        return row + 1

    def decoded_word(self, ids: np.ndarray) -> str:
        """The word of these character ids."""
        return bytes((ids[(ids >= 1) & (ids <= 256)] - 1).astype(np.uint8)).decode("utf-8", "replace")


class TaggerCharacters(Spelling):
    """Cross-View Training's input_ids [B, T, longest word]: characters of a fixed list, 0 behind the last.

    `vocab_size` ids.

    A character that is not of the list is UNKNOWN; the words around a sentence have no spelling and are
    MISSING. Brackets and slashes may be written as treebanks do (-LRB-, \\/), and n 't is cut into the two
    words that most corpora have (do n't, not don 't).
    """

    # 0 is padding, 2 and 3 stand for the words around a sentence where words have ids
    UNKNOWN, MISSING = 1, MISSING
    CHARACTERS = (
        "!'#$%&\"()*+,-./\\_`{}[]<>:;?@0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        "£€®™\ufffd½»•—“”°‘’"
    )
    BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]"}
    NEGATED = frozenset("do does did is are was were has have had could would should ca wo ai might".split())
    vocab_size = 5 + len(CHARACTERS)

    _IDS = {c: 5 + i for i, c in enumerate(CHARACTERS)}

    def prepared(self, words: Sequence[str]) -> list[str]:
        words = list(words)
        for i in range(1, len(words)):
            before = words[i - 1]
            if (
                words[i].lower() == "'t"
                and before[-1:].lower() == "n"
                and before[:-1].lower() in self.NEGATED
            ):
                words[i - 1 : i + 1] = before[:-1], before[-1] + words[i]
        return [self.BRACKETS.get(w, w.replace("\\/", "/").replace("\\*", "*")) for w in words]

    def encode(self, words: Iterable[str]) -> np.ndarray:
        spelled = [[self._IDS.get(c, self.UNKNOWN) for c in word] for word in words]
        out = np.zeros((len(spelled), max(map(len, spelled), default=1)), np.int64)
        for row, ids in zip(out, spelled):
            row[: len(ids)] = ids
        return out

    def spelled(self, texts: Sequence[Sequence[str]], width: int) -> list[np.ndarray]:
        """The first `width` characters of each word of each text, 0 behind them.  uint8 [n, width] each"""
        known = {word: i for i, word in enumerate(dict.fromkeys(w for words in texts for w in words))}
        table = np.zeros((len(known), width), np.uint8)
        for word, row in zip(known, table):
            plain = self.BRACKETS.get(word, word)[:width]
            row[: len(plain)] = [self._IDS.get(c, self.UNKNOWN) for c in plain]
        return [table[np.array([known[w] for w in words], np.int64)] for words in texts]

    def edges(self, width: int) -> np.ndarray:
        out = np.zeros((2, width), np.int64)
        out[:, 0] = self.MISSING
        return out

    def decoded_word(self, ids: np.ndarray) -> str:
        """The word of these character ids."""
        return "".join(
            self.CHARACTERS[i - 5] if i >= 5 else "\ufffd"
            for i in ids.tolist()
            if i >= 5 or i == self.UNKNOWN
        )
