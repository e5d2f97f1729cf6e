from __future__ import annotations

import types

import numpy as np

SPECIALS = ("<pad>", "<unk>", "<cls>", "<sep>", "<mask>", "<s>", "</s>")
ROLES = {
    "pad": "<pad>",
    "unk": "<unk>",
    "cls": "<cls>",
    "sep": "<sep>",
    "mask": "<mask>",
    "bos": "<s>",
    "eos": "</s>",
}
FORMATS = {  # before, between and behind one or two texts: (token, type); types of the texts
    "bert": ([[("<cls>", 0)], [("<sep>", 0)], [("<sep>", 1)]], (0, 1)),
    "bart": ([[("<s>", 0)], [("</s>", 0), ("</s>", 0)], [("</s>", 0)]], (0, 0)),
    "gpt2": ([[], [], []], (0, 0)),
    "t5": ([[], [("</s>", 0)], [("</s>", 0)]], (0, 0)),
    "xlnet": ([[], [("<sep>", 0)], [("<sep>", 1), ("<cls>", 2)]], (0, 1)),
}


class States:
    """A tokenizer whose tokens are a chain's states, with what objectives ask of one: special tokens first,
    then `sentinels` sentinels, then state k as the id `first` + k. Every token is a word.
    """

    def __init__(self, family: str, states: int, sentinels: int = 0):
        names = (*SPECIALS, *(f"<extra_id_{i}>" for i in range(sentinels)))
        self.ids = {name: i for i, name in enumerate(names)}
        self.first, self.vocab_size = len(names), len(names) + states
        self.special_ids = np.arange(len(names))
        for role, token in ROLES.items():
            setattr(self, f"{role}_token_id", self.ids[token])
        left = family == "xlnet"
        self.padding_side = "left" if left else "right"
        self.family = types.SimpleNamespace(pad_type=3 if left else 0, padding_side=self.padding_side)
        self._fixed, self._types = FORMATS[family]
        self.word_starts = np.ones(self.vocab_size, bool)
        self.fingerprint = f"{family}, {states} states, {sentinels} sentinels"

    def id_of(self, token: str) -> int | None:
        return self.ids.get(token)

    def build(self, a: np.ndarray, b: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Ids and types of one or two texts with the special tokens around them."""
        texts = [a] if b is None else [a, b]
        fixed = (
            self._fixed
            if b is not None
            else [self._fixed[0], [(t, 0 if n == 1 else n) for t, n in self._fixed[2]]]
        )
        ids, kinds = [], []
        for k, piece in enumerate(fixed):
            ids += [self.ids[token] for token, _ in piece]
            kinds += [kind for _, kind in piece]
            if k < len(texts):
                ids += list(texts[k])
                kinds += [self._types[k]] * len(texts[k])
        return np.array(ids, np.int64), np.array(kinds, np.int64)
