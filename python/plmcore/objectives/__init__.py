"""Pre-training objectives: what is hidden of a text and what is to be predicted.

    objective = objectives.MaskedLM(corpus, tokenizer, length=128)
    batch = objective.batch([0, 1, 2], seed=0, epoch=0)  # arrays by the names of the model's arguments

or by name: objectives.make("masked-lm", corpus, tokenizer, length=128).
"""

from __future__ import annotations

from importlib import import_module

_CLASSES = {  # name -> module, class
    "causal-lm": ("causal", "CausalLM"),
    "bidirectional-lm": ("causal", "BidirectionalLM"),
    "masked-lm": ("masked", "MaskedLM"),
    "next-sentence": ("segment_pairs", "NextSentence"),
    "sentence-order": ("segment_pairs", "SentenceOrder"),
    "permutation-lm": ("permutation", "PermutationLM"),
    "denoising": ("denoising", "Denoising"),
    "fragment": ("fragment", "Fragment"),
    "span-corruption": ("span_corruption", "SpanCorruption"),
    "blank-infilling": ("blanks", "BlankInfilling"),
    "masked-seq2seq": ("masked_seq2seq", "MaskedSeq2Seq"),
    "translation": ("parallel", "Translation"),
    "contrastive": ("parallel", "ContrastivePairs"),
    "text-to-text": ("text_to_text", "TextToText"),
}
_MODULES = {name: module for module, name in _CLASSES.values()} | {
    "Mixture": "mixture",
    "Objective": "objective",
    "info_nce": "parallel",
    "pairwise_loss": "parallel",
}
NAMES = tuple(_CLASSES)

__all__ = ["NAMES", "make", *_MODULES]


def make(name: str, *data, **settings):
    """The objective of this name, over a corpus and a tokenizer (see its class for data and settings)."""
    if name not in _CLASSES:
        raise ValueError(f"there is no objective {name!r}; there are {', '.join(NAMES)}")
    return __getattr__(_CLASSES[name][1])(*data, **settings)


def __getattr__(name: str):
    if name in _MODULES:
        return getattr(import_module(f"plmcore.objectives.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'plmcore.objectives' has no attribute {name!r}")
