"""How likely a language model finds texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError, Tensor, ops
from plmcore.autograd import no_grad
from plmcore.generate.inputs import prompts_of
from plmcore.generate.run import evaluating
from plmcore.generate.steps import has_encoder, padded


def score(
    lm, texts: str | Sequence[Any], targets: str | Sequence[Any] | None = None, batch_size: int = 8
) -> list[np.ndarray]:
    """The log-probability of each token of each text given those before it; the first has nothing before it and is left out.

    With an encoder: of each token of `targets`, given the text.
    """
    if has_encoder(lm.model) != (targets is not None):
        needs = "takes targets" if targets is None else "has no encoder: it takes no targets"
        raise ArgumentError(f"score: {type(lm.model).__name__} {needs}")
    vocabulary, pad = lm.config.vocab_size, getattr(lm.config, "pad_token_id", None)
    rows = prompts_of(texts, None, lm.tokenizer, vocabulary, pad, []).rows
    labels = rows if targets is None else prompts_of(targets, None, lm.tokenizer, vocabulary, pad, []).rows
    if len(labels) != len(rows):
        raise ArgumentError(f"{len(rows)} texts need {len(rows)} targets, got {len(labels)}")
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    found: dict[int, np.ndarray] = {}
    with no_grad(), evaluating(lm.model):
        for start in range(0, len(rows), batch_size):
            chosen = order[start : start + batch_size]
            found.update(zip(chosen, score_batch(lm.model, [rows[i] for i in chosen], [labels[i] for i in chosen])))
    return [found[i] for i in range(len(rows))]


def score_batch(model, rows: list[np.ndarray], labels: list[np.ndarray]) -> list[np.ndarray]:
    ids, mask = padded(rows)
    inputs = {"input_ids": Tensor(ids)} | ({} if mask.all() else {"attention_mask": Tensor(mask.astype(np.int64))})
    wanted, there = padded(labels)
    if has_encoder(model):
        inputs["decoder_input_ids"] = model.body.shifted(Tensor(wanted))
    else:
        wanted, there = np.pad(wanted[:, 1:], ((0, 0), (0, 1))), np.pad(there[:, 1:], ((0, 0), (0, 1)))
    logits = model(**inputs).logits
    chosen = ops.cross_entropy(logits, Tensor(np.where(there, wanted, -100)), reduction="none").numpy()
    return [-c[t] for c, t in zip(np.asarray(chosen, np.float64), there)]
