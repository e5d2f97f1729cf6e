"""Pre-training objectives: what is hidden of a text and what is to be predicted.

    objective = objectives.MaskedLM(corpus, tokenizer, length=128)
    batch = objective.batch([0, 1, 2], seed=0, epoch=0)  # arrays by the names of the model's arguments

or by name: objectives.make("masked-lm", corpus, tokenizer, length=128).
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

from plmcore._core import ArgumentError

if TYPE_CHECKING:  # imported on first use
    from plmcore.objectives.bidirectional import BidirectionalLM
    from plmcore.objectives.blanks import BlankInfilling
    from plmcore.objectives.causal import CausalLM
    from plmcore.objectives.denoising import Denoising
    from plmcore.objectives.fragment import Fragment
    from plmcore.objectives.masked import MaskedLM
    from plmcore.objectives.masked_seq2seq import MaskedSeq2Seq
    from plmcore.objectives.mixture import Mixture
    from plmcore.objectives.objective import Objective
    from plmcore.objectives.parallel import ContrastivePairs, Translation, info_nce, pairwise_loss
    from plmcore.objectives.permutation import PermutationLM
    from plmcore.objectives.segment_pairs import NextSentence, SentenceOrder
    from plmcore.objectives.span_corruption import SpanCorruption
    from plmcore.objectives.text_to_text import TextToText

__all__ = [
    "BidirectionalLM",
    "BlankInfilling",
    "CausalLM",
    "ContrastivePairs",
    "Denoising",
    "Fragment",
    "MaskedLM",
    "MaskedSeq2Seq",
    "Mixture",
    "NAMES",
    "NextSentence",
    "Objective",
    "PermutationLM",
    "SentenceOrder",
    "SpanCorruption",
    "TextToText",
    "Translation",
    "WITHOUT_TEXT",
    "info_nce",
    "labels_of",
    "make",
    "pairwise_loss",
]

_CLASSES = {  # name -> module, class
    "causal-lm": ("causal", "CausalLM"),
    "bidirectional-lm": ("bidirectional", "BidirectionalLM"),
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
WITHOUT_TEXT = ("contrastive", "text-to-text")  # made of pairs or records


def make(name: str, *data: Any, **settings: Any) -> Objective:
    """Makes the objective of this name, over a corpus and a tokenizer. Its class describes both."""
    if name not in _CLASSES:
        raise ArgumentError(f"there is no objective {name!r}; there are {', '.join(NAMES)}")
    known = arguments_of(name)
    for key in settings:
        if key not in known:
            from plmcore.train import hints

            meant = hints.setting(f"objective.{key}", {"objective": known}).replace("objective.", "")
            raise ArgumentError(f"{name} has no setting {key}{meant}")
    objective: Objective = kind_of(name)(*data, **settings)
    return objective


def kind_of(name: str) -> Any:
    """The class of an objective."""
    module, kind = _CLASSES[name]
    return getattr(import_module(f"plmcore.objectives.{module}"), kind)


def arguments_of(name: str) -> dict[str, str]:
    """The names and kinds of what an objective's class takes, with what it hands on to its masks."""
    from plmcore.objectives.masked import Masking

    found: dict[str, str] = {}
    makers = [cls.__init__ for cls in kind_of(name).__mro__ if "__init__" in vars(cls)]
    while makers:
        parameters = inspect.signature(makers.pop(0)).parameters.values()
        found |= {
            p.name: p.annotation for p in parameters if p.kind is not p.VAR_KEYWORD and p.name != "self"
        }
        rest = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
        if rest != "settings":  # those go to the class below, others to the masks
            makers = [Masking.__init__] if rest else []
    return found


def labels_of(name: str) -> str:
    """The kind of labels that the objective of this name gives, see plmcore.models.labels."""
    found: str = kind_of(name).labels
    return found


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return getattr(import_module(f"plmcore.objectives.{_MODULES[name]}"), name)
        raise AttributeError(f"module 'plmcore.objectives' has no attribute {name!r}")
