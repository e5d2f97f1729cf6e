"""Backend of single characters, for character language models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plmcore._core import FormatError
from plmcore.tokenizers import guard
from plmcore.tokenizers.added import AddedTokens, Flat, Row


class Characters:
    """A vocabulary of characters, and added tokens of several. A character it lacks is `unknown`."""

    kind = "characters"
    threaded = False

    def __init__(self, vocabulary: Mapping[str, int], unknown: str = "<unk>"):
        if unknown not in vocabulary:
            raise FormatError(f"the vocabulary of characters has no {unknown!r}")
        self.vocabulary, self.unknown = dict(vocabulary), unknown
        self.size = max(vocabulary.values()) + 1
        self._tokens = {id: token for token, id in vocabulary.items()}
        self.added = AddedTokens({token: id for token, id in vocabulary.items() if len(token) != 1})
        self.special = set(self.added.ids.values())
        single = {ord(token): id for token, id in vocabulary.items() if len(token) == 1}
        top = max(single, default=0) + 1  # for all above
        self._ids_of_code = np.full(top + 1, vocabulary[unknown], np.int32)
        self._ids_of_code[list(single)] = list(single.values())

    def flat(self, texts: Sequence[str]) -> Flat:
        return self.added.flat_of(texts, self._flat)

    def _flat(self, texts: list[str]) -> Flat:
        with guard.encoding(texts):
            codes = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        return self._ids_of_code[np.minimum(codes, len(self._ids_of_code) - 1)], lengths

    def rows(self, texts: Sequence[str]) -> list[Row]:
        return self.added.rows_of(texts, lambda parts: [self._row(part) for part in parts])

    def _row(self, text: str) -> Row:
        places = np.arange(len(text))
        words = np.cumsum(np.array([c.isspace() for c in text], bool))
        return self._flat([text])[0], np.stack([places, places + 1], 1), words

    def decode(self, rows: Sequence[np.ndarray]) -> list[str]:
        return ["".join(self._tokens.get(i, "") for i in row.tolist()) for row in rows]

    def starts_word(self, token: str) -> bool:
        return token.isspace()

    def word(self, word: str) -> str:
        return word

    def add(self, tokens: Sequence[str], special: bool) -> None:
        top = max(self.vocabulary.values()) + 1
        new = [token for token in map(str, tokens) if token not in self.vocabulary]
        vocabulary = self.vocabulary | {token: top + i for i, token in enumerate(new)}
        size, kept = self.size, self.special
        self.__init__(vocabulary, self.unknown)  # type: ignore[misc]
        self.size, self.special = size, kept | ({vocabulary[str(t)] for t in tokens} if special else set())

    def identity(self) -> list[Any]:
        return [self.kind, self.vocabulary, self.unknown]

    def files(self) -> dict[str, bytes]:
        """A tokenizer.json that does the same in the `tokenizers` library."""
        from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

        native = Tokenizer(models.WordLevel(self.vocabulary, unk_token=self.unknown))
        native.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        native.decoder = decoders.Fuse()
        native.add_tokens(
            [AddedToken(t, special=id in self.special, normalized=False) for t, id in self.added.ids.items()]
        )
        return {"tokenizer.json": native.to_str(pretty=True).encode()}


def read(text: bytes, source: object, unknown: str) -> Characters:
    """From the tokenizer.json that `files` made."""
    with guard.reading(source):
        values = json.loads(text)
        vocabulary = {str(token): int(id) for token, id in values["model"]["vocab"].items()}
        special = {int(t["id"]) for t in values.get("added_tokens", []) if t["special"]}
        vocabulary |= {str(t["content"]): int(t["id"]) for t in values.get("added_tokens", [])}
        if any(id < 0 or id > 16 * len(vocabulary) + 65536 for id in vocabulary.values()):
            raise FormatError(f"'{source}' cannot be read: an id is out of range")
    backend = Characters(vocabulary, unknown)
    backend.special = special
    return backend
