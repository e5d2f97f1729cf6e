from __future__ import annotations

from typing import Any

import numpy as np

from plmcore.tokenizers import format as formats
from plmcore.tokenizers import library
from plmcore.tokenizers.batch import Batch
from plmcore.tokenizers.families import Family
from plmcore.tokenizers.tokenizer import Tokenizer
from plmcore.tokenizers.word_characters import WordCharacters


class SpelledTokenizer(Tokenizer):
    """Turns text into the characters of its words, input_ids [B, T, width], for models that know any word.

    Ids of encode_ids, id_of and so on are those of the words that the model was trained to predict, where it
    was.
    """

    spells = True

    def __init__(self, width: int, family: Family, words: Tokenizer | None = None):
        self.width, self.spelling = width, WordCharacters(width)
        places = {"bos": 0, "eos": 1}
        self._around = formats.of_family(family, places.__getitem__)
        if words is None:
            tokens = {token: i for i, token in enumerate(family.roles.values())}
            super().__init__(library.words(tokens, unknown=family.roles["unk"]), family)
        else:
            super().__init__(
                words.backend, family, words.roles, max_length=words.max_length, settings=words.settings
            )

    def __call__(self, text: Any, pair: Any = None, **options: Any) -> Batch:
        """As Tokenizer, with the characters of words for ids."""
        for key in ("padding_side", "pad_to", "multiple_of"):
            options.pop(key, None)
        options.setdefault("max_length", self.max_length)
        return self.spelling(text, pair, format=self._around, **options)

    def beyond(self, ids: int) -> str:
        """Nothing: a model reads the characters of any word."""
        return ""

    def decode(self, ids: Any, skip_special_tokens: bool = True) -> Any:
        """Texts of character ids [T, width] or [B, T, width]; else as Tokenizer."""
        if np.ndim(ids) < 2 or np.shape(ids)[-1] != self.width:
            return super().decode(ids, skip_special_tokens)
        return self.spelling.decode(np.asarray(ids))
