"""How likely a language model finds texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.evaluate import scoring
from plmcore.evaluate.scoring import NONE, Row
from plmcore.generate.inputs import prompts_of
from plmcore.generate.steps import has_encoder


def score(
    lm: Any, texts: str | Sequence[Any], targets: str | Sequence[Any] | None = None
) -> list[np.ndarray]:
    """The log-probability of each token of each text given those before it; the first has nothing before it
    and is left out.

    With an encoder: of each token of `targets`, given the text.
    """
    if has_encoder(lm.model) != (targets is not None):
        needs = "takes targets" if targets is None else "has no encoder: it takes no targets"
        raise ArgumentError(f"score: {type(lm.model).__name__} {needs}")
    kind = scoring.kind_of(lm)
    if kind == "masked":
        raise ArgumentError(
            f"score: {type(lm.model).__name__} does not read from left to right; perplexity masks one "
            f"token at a time"
        )
    vocabulary, pad = lm.config.vocab_size, getattr(lm.config, "pad_token_id", None)
    ids = prompts_of(texts, None, lm.tokenizer, vocabulary, pad, []).rows
    if targets is None:
        labels = [np.append(row[1:], NONE) if kind == "causal" else np.append(NONE, row[1:]) for row in ids]
    else:
        labels = prompts_of(targets, None, lm.tokenizer, vocabulary, pad, []).rows
    if len(labels) != len(ids):
        raise ArgumentError(f"{len(ids)} texts need {len(ids)} targets, got {len(labels)}")
    return [found.log_probs for found in scoring.score(lm, map(Row, ids, labels), best=False)]
