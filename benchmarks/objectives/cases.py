"""The objectives, the corpus they read, and what of transformers does the same."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

VOCABULARY = 1024  # of `gpt2 tiny`
SIZES = {"tiny, 12 x 64": (12, 64), "32 x 128": (32, 128), "8 x 512": (8, 512)}
OBJECTIVES: dict[str, tuple[str, dict[str, Any]]] = {  # case -> family, settings
    "causal-lm": ("gpt2", {}),
    "bidirectional-lm": ("transformer", {}),
    "masked-lm": ("bert", {}),
    "masked-lm words": ("bert", {"unit": "word"}),
    "masked-lm n-grams": ("bert", {"unit": "ngram", "exact": True}),
    "next-sentence": ("bert", {}),
    "sentence-order": ("bert", {"unit": "ngram", "exact": True}),
    "permutation-lm": ("xlnet", {}),
    "denoising": ("bart", {}),
    "fragment": ("bart", {}),
    "span-corruption": ("t5", {}),
    "blank-infilling": ("bert", {}),
    "masked-seq2seq": ("bart", {}),
    "translation": ("t5", {}),
    "contrastive": ("bert", {"negatives": True}),
}
COLLATORS = {  # case -> transformers' class and its settings
    "causal-lm": ("DataCollatorForLanguageModeling", {"mlm": False}),
    "masked-lm": ("DataCollatorForLanguageModeling", {}),
    "masked-lm words": ("DataCollatorForLanguageModeling", {"whole_word_mask": True}),
    "permutation-lm": ("DataCollatorForPermutationLanguageModeling", {}),
    "translation": ("DataCollatorForSeq2Seq", {}),
}
BLANKS = ("[sMASK]", "[gMASK]", "<|startofpiece|>", "<|endofpiece|>")


@functools.cache
def tokenizer(family: str):
    """Made-up words: every third continues the word before it."""
    import tokenizers
    from plmcore.tokenizers import FAMILIES, Tokenizer
    from plmcore.tokenizers.library import Library

    known = FAMILIES[family]
    special = list(dict.fromkeys([*known.roles.values(), *known.extra, *BLANKS]))
    words = [f"##w{i}" if i % 3 == 2 else f"w{i}" for i in range(VOCABULARY - len(special))]
    vocabulary = {token: i for i, token in enumerate([*special, *words])}
    native = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token=known.roles["unk"]))
    native.add_special_tokens(special)
    return Tokenizer(Library(native), known)


@functools.cache
def corpus(tokenizer, tokens: int = 2_000_000):
    """Documents of 10 to 60 sentences of 5 to 40 tokens."""
    from plmcore.data import Corpus

    rng = np.random.default_rng(0)
    plain = np.setdiff1d(np.arange(tokenizer.vocab_size), tokenizer.special_ids)
    documents, sentences, total = [], [], 0
    while total < tokens:
        sizes = rng.integers(5, 40, rng.integers(10, 60)).tolist()
        documents.append(rng.choice(plain, sum(sizes)))
        sentences.append(sizes)
        total += sum(sizes)
    return Corpus.from_ids(documents, tokenizer.vocab_size, sentences)
