"""GPT-1's input transformations: texts as one sequence of a decoder, with tokens for its start, between two
texts and for its end.

    one text      _start_ A _classify_
    two texts     _start_ A _delimiter_ B _classify_        entailment; context and choice
    both orders   the same twice, the second time B first; the last states are added     similarity

The end token's state speaks for the sequence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plmcore import models
from plmcore._core import ArgumentError
from plmcore.tokenizers import Tokenizer
from plmcore.tokenizers.format import Format, Part

if TYPE_CHECKING:
    from plmcore.models import Model

START, DELIMITER, CLASSIFY, PAD = "_start_", "_delimiter_", "_classify_", "<pad>"


def has_format(tokenizer: Tokenizer) -> bool:
    """Whether the family puts special tokens around texts itself."""
    return tokenizer.format.added(True) > 0


def give_format(tokenizer: Tokenizer) -> None:
    """Adds the tokens, where they are new, and puts them around texts from now on."""
    if tokenizer.pad_token is None:
        tokenizer.set_special("pad", PAD)
    tokenizer.add_tokens([START, DELIMITER, CLASSIFY], special=True)
    start, between, end = (Part(None, tokenizer.id_of(t) or 0, 0) for t in (START, DELIMITER, CLASSIFY))
    a, b = Part(0, -1, 0), Part(1, -1, 0)
    tokenizer.set_format(Format((start, a, end), (start, a, between, b, end)))


def grown(model: Model, tokenizer: Tokenizer) -> Model:
    """The model with rows, drawn afresh, for the tokens that are new, and with the tokenizer's padding."""
    config, head = model.config, models.head_name(model)
    size = max(config.vocab_size, tokenizer.vocab_size)
    new = models.build(config.replace(vocab_size=size, pad_token_id=tokenizer.pad_token_id), head)
    own: dict[str, Any] = dict(new.state_dict())
    for name, old in model.state_dict().items():
        value = np.array(own[name].numpy())
        if value.shape[1:] != tuple(old.shape[1:]) or value.shape[:1] < tuple(old.shape[:1]):
            raise ArgumentError(f"{name} is {list(old.shape)}: it cannot grow to {list(value.shape)}")
        value[: old.shape[0]] = old.numpy()
        own[name] = value
    new.load_state_dict(own)
    return new
