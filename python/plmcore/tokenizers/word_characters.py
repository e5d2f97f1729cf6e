"""Words as their characters, the input of ELMo and of Cross-View Training: no word is out of vocabulary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.models import spelling
from plmcore.tokenizers import format as formats
from plmcore.tokenizers import guard
from plmcore.tokenizers.added import Row
from plmcore.tokenizers.batch import MISSING, Batch, Padding, Truncation, Window, fill, fill_detail
from plmcore.tokenizers.format import Format, Part

AROUND = Format(
    (Part(None, 0, 0), Part(0, -1, 0), Part(None, 1, 0)),
    (Part(None, 0, 0), Part(0, -1, 0), Part(None, 1, 0), Part(None, 0, 1), Part(1, -1, 1), Part(None, 1, 1)),
)


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
        pair: str | Sequence[str] | Sequence[Sequence[str]] | None = None,
        *,
        max_length: int | None = None,
        truncation: str = "longest_first",
        stride: int | None = None,
        add_special_tokens: bool = True,
        words: bool = False,
        format: Format | None = None,
    ) -> Batch:
        """input_ids [B, T, width] of one text or several, or of pairs, split at white space;
        words=True: of lists of words.

        Special are the first and last word of a sentence; in a `format` they have the ids 0 and 1. Other
        options are those of Tokenizer.
        """
        one = isinstance(text, str) or (words and len(text) > 0 and isinstance(text[0], str))
        texts = self._words([text] if one else text, words)
        pairs = None if pair is None else self._words([pair] if one else pair, words)
        if pairs is not None and len(pairs) != len(texts):
            raise ArgumentError(f"{len(texts)} texts need {len(texts)} second texts, got {len(pairs)}")
        known = list(dict.fromkeys(word for rows in (texts, pairs or []) for row in rows for word in row))
        table = self.encode(known)
        width = table.shape[1]
        table = np.concatenate([self.edges(width), table, np.zeros((1, width), np.int64)])
        place = {word: i + 2 for i, word in enumerate(known)}
        a, b = (
            [np.array([place[word] for word in row], np.int64) for row in rows] if rows is not None else None
            for rows in (texts, pairs)
        )
        format = (format or AROUND) if add_special_tokens else formats.BARE
        cut, added = Truncation(max_length, truncation, stride), format.added(b is not None)
        windows: list[Window] = []
        for i, ids in enumerate(a or ()):
            windows += cut.windows(i, len(ids), None if b is None else len(b[i]), added)
        padding = Padding(len(known) + 2, 0, "right")
        arrays = fill(windows, a or [], b, format, padding)
        T = arrays["input_ids"].shape[1]
        arrays["input_ids"] = table[arrays["input_ids"]]
        squeeze = one and stride is None

        def detail() -> dict[str, np.ndarray]:
            rows = [None if x is None else spans(x, given, words) for x, given in ((a, text), (b, pair))]
            found = fill_detail(windows, rows[0] or [], rows[1], format, padding, T)
            return {name: x[0] for name, x in found.items()} if squeeze else found

        sample = np.array([w.sample for w in windows], np.int64)
        return Batch({name: x[0] for name, x in arrays.items()} if squeeze else arrays, sample, detail)

    def _words(self, texts: Sequence[Any], words: bool) -> list[list[str]]:
        with guard.encoding(() if words else texts):
            return [self.prepared(t if words else t.split()) for t in texts]

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

    vocab_size = spelling.IDS

    def __init__(self, width: int = 50):
        self.width = width

    def encode(self, words: Iterable[str]) -> np.ndarray:
        words = list(words)
        with guard.encoding(words):
            return spelling.spelled(words, self.width)

    def edges(self, width: int) -> np.ndarray:
        return spelling.edges(width)

    def decoded_word(self, ids: np.ndarray) -> str:
        """The word of these character ids."""
        return spelling.read(ids)


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


def spans(ids: Sequence[np.ndarray], given: Any, words: bool) -> list[Row]:
    """ids, offsets and numbers of the words of each text; offsets of a list of words count within words."""
    texts = [given] if isinstance(given, str) or len(ids) != len(given) else given
    found = []
    for row, text in zip(ids, texts, strict=True):
        if words:
            places = [(0, len(word)) for word in text]
        else:
            places = [m.span() for m in re.finditer(r"\S+", text)]
        found.append((row, np.array(places, np.int64).reshape(-1, 2)[: len(row)], np.arange(len(row))))
    return found
