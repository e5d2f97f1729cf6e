"""What a language model thinks of given tokens:
the log-probability of each, and whether it is the model's first choice.

Logits are made only of the rows that are asked about, and of these some megabytes at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from plmcore._core import ArgumentError, ops
from plmcore.models.labels import (
    BLANKS,
    DECODER,
    FOLLOWING,
    NEXT,
    NEXT_SENTENCE,
    PLACE,
    SENTENCE_ORDER,
    TARGETS,
    taken,
)
from plmcore.nn import inference

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel
    from plmcore.models.padding import Encoded

KINDS = {  # of labels, as a head takes them
    NEXT: "causal",
    FOLLOWING: "causal",
    BLANKS: "causal",  # without a source, as the model reads then
    TARGETS: "permuted",
    DECODER: "seq2seq",
    **dict.fromkeys((PLACE, NEXT_SENTENCE, SENTENCE_ORDER), "masked"),
}
HEADS = ("causal-lm", "double-heads", "masked-lm", "pretraining", "seq2seq-lm")
NONE = -100  # the label of a position that is not asked about
BATCH_TOKENS = 4096
BUFFER = 64 << 20  # bytes of logits at a time


@dataclass(frozen=True)
class Row:
    """A sequence with questions.

    `labels` has the token that is asked about at the place where its logits are made.
    """

    ids: np.ndarray  # what the model reads; the source of a seq2seq
    labels: np.ndarray  # of a seq2seq the target, otherwise as long as ids

    @property
    def size(self) -> int:
        return max(len(self.ids), len(self.labels))


@dataclass(frozen=True)
class Scores:
    """Of the tokens that were asked about, in order."""

    log_probs: np.ndarray  # float64 [M], natural logarithm
    best: np.ndarray  # bool [M]: is it the model's first choice? [0] where that was not asked


def kind_of(lm: LanguageModel) -> str:
    """causal, masked, seq2seq; "permuted" where the input chooses the order of prediction (XLNet)."""
    kind = KINDS.get(next(iter(taken(lm.model)), ""))
    if kind is None:
        raise ArgumentError(
            f"a model with the head {lm.head} gives no probabilities of tokens; load it with head= one "
            f"of {', '.join(HEADS)}"
        )
    if kind == "causal" and getattr(lm.config, "is_decoder", True) is False:
        raise ArgumentError(
            f"this {lm.config.model_type} sees the tokens it would predict: load it with "
            f"is_decoder=True, or with head='masked-lm'"
        )
    return kind


def score(
    lm: LanguageModel, rows: Iterable[Row], batch_tokens: int = BATCH_TOKENS, best: bool = True
) -> Iterator[Scores]:
    """The scores of each row, in order.

    As many rows run together as make `batch_tokens` with their padding; the model runs as in eval mode.
    """
    for batch in batches(rows, batch_tokens):
        with inference():
            found = _score(lm, batch, best)
        yield from found


def batches(rows: Iterable[Row], batch_tokens: int) -> Iterator[list[Row]]:
    batch: list[Row] = []
    longest = 0
    for row in rows:
        if batch and max(longest, row.size) * (len(batch) + 1) > batch_tokens:
            yield batch
            batch, longest = [], 0
        batch.append(row)
        longest = max(longest, row.size)
    if batch:
        yield batch


def _score(lm: LanguageModel, rows: Sequence[Row], ask_best: bool) -> list[Scores]:
    pad = getattr(lm.config, "pad_token_id", None)
    ids, mask = padded([row.ids for row in rows], 0 if pad is None else pad)
    labels, _ = padded([row.labels for row in rows], NONE)
    model: Any = lm.model
    given = model.tensors({"ids": ids, "mask": mask, "labels": labels})
    return answers(lm, model.scored(given["ids"], given["mask"], given["labels"]), labels, ask_best)


def answers(lm: LanguageModel, encoded: Encoded, labels: np.ndarray, ask_best: bool) -> list[Scores]:
    """The scores of each row of labels [B, T], from the model's rows at their places."""
    model: Any = lm.model
    asked = model.tensors({"labels": labels})["labels"]
    hidden, wanted = encoded.layout.labelled(encoded.rows, asked)  # [M, C], [M]
    M, step = hidden.shape[0], max(1, BUFFER // (4 * lm.config.vocab_size))
    log_probs, best = np.empty(M), np.empty(M if ask_best else 0, bool)
    for i in range(0, M, step):
        n = min(step, M - i)
        logits, right = model.logits(ops.narrow(hidden, i, n)), ops.narrow(wanted, i, n)  # [n, V]
        log_probs[i : i + n] = -ops.cross_entropy(logits, right, reduction="none").numpy().astype(np.float64)
        if ask_best:
            best[i : i + n] = ops.argmax(logits).numpy() == right.numpy()
    ends = np.cumsum((labels != NONE).sum(1))[:-1]
    return [Scores(*both) for both in zip(np.split(log_probs, ends), np.split(best, ends))]


def padded(rows: Sequence[np.ndarray], fill: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of different lengths as one array, padded on the right,
    and the mask of what they had.  int64 [B, T] each
    """
    T = max(map(len, rows))
    ids, mask = np.full((len(rows), T), fill, np.int64), np.zeros((len(rows), T), np.int64)
    for b, row in enumerate(rows):
        ids[b, : len(row)], mask[b, : len(row)] = row, 1
    return ids, mask
