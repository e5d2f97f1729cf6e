"""A tokenizer of numbered tokens with the attributes that objectives use, and small corpora."""

import types

import numpy as np
from plmcore.data import Corpus

SPECIALS = (
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "<s>",
    "</s>",
    "[sMASK]",
    "[gMASK]",
    "<|startofpiece|>",
    "<|endofpiece|>",
)
FORMATS = {  # before, between, after one or two texts: (token, type); types of the texts
    "bert": ([[("[CLS]", 0)], [("[SEP]", 0)], [("[SEP]", 1)]], [0, 1]),
    "bart": ([[("<s>", 0)], [("</s>", 0), ("</s>", 0)], [("</s>", 0)]], [0, 0]),
    "gpt": ([[], [], []], [0, 0]),
    "t5": ([[], [("</s>", 0)], [("</s>", 0)]], [0, 0]),
    "xlnet": ([[], [("[SEP]", 0)], [("[SEP]", 1), ("[CLS]", 2)]], [0, 1]),
}


class Numbers:
    """Ids: the special tokens first, then `sentinels` sentinels, then plain tokens; every third plain one
    continues a word.
    """

    def __init__(self, family="bert", plain=1000, sentinels=0):
        names = (*SPECIALS, *(f"<extra_id_{i}>" for i in range(sentinels)))
        self.ids = {name: i for i, name in enumerate(names)}
        self.first, self.vocab_size = len(names), len(names) + plain
        self.special_ids = np.arange(len(names))
        roles = dict(pad="[PAD]", unk="[UNK]", cls="[CLS]", sep="[SEP]", mask="[MASK]", bos="<s>", eos="</s>")
        for role, token in roles.items():
            setattr(self, f"{role}_token_id", self.ids[token])
        left = family == "xlnet"
        self.padding_side = "left" if left else "right"
        self.family = types.SimpleNamespace(pad_type=3 if left else 0, padding_side=self.padding_side)
        self.fixed, self.types = FORMATS[family]
        self.word_starts = np.ones(self.vocab_size, bool)
        self.word_starts[self.first + 2 :: 3] = False
        self.fingerprint = f"{family} {plain} {sentinels}"

    def id_of(self, token):
        return self.ids.get(token)

    def build(self, a, b=None):
        texts = [a] if b is None else [a, b]
        fixed = [self.fixed[0], self.fixed[2]] if b is None else self.fixed
        if b is None:  # the end of a single text has the type of its first segment
            fixed = [fixed[0], [(t, 0 if n == 1 else n) for t, n in fixed[1]]]
        ids, kinds = [], []
        for k, piece in enumerate(fixed):
            ids += [self.ids[t] for t, _ in piece]
            kinds += [n for _, n in piece]
            if k < len(texts):
                ids += list(texts[k])
                kinds += [self.types[k]] * len(texts[k])
        return np.array(ids, np.int64), np.array(kinds, np.int64)


def corpus(tokenizer, documents=40, sentences=(2, 9), words=(3, 20), seed=0):
    """Random documents of random sentences of plain tokens."""
    rng = np.random.default_rng(seed)
    docs, lengths = [], []
    for _ in range(documents):
        sizes = rng.integers(*words, size=rng.integers(*sentences)).tolist()
        docs.append(rng.integers(tokenizer.first, tokenizer.vocab_size, sum(sizes)))
        lengths.append(sizes)
    return Corpus.from_ids(docs, tokenizer.vocab_size, lengths)


def stream(corpus, separator=None):
    """The documents on end, with the separator after each."""
    parts = []
    for i in range(len(corpus)):
        parts += [np.asarray(corpus[i], np.int64), [] if separator is None else [separator]]
    return np.concatenate(parts).astype(np.int64)


def text_of(ids, tokenizer):
    """A row without its special tokens."""
    return [int(i) for i in ids if i >= tokenizer.first]


def assert_share(hits, total, expected):
    """Within three standard deviations of a binomial."""
    assert abs(hits - total * expected) <= 3 * np.sqrt(total * expected * (1 - expected)), (
        hits / total,
        expected,
    )
