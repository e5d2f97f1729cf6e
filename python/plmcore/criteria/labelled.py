"""Criteria of labels: what the model is to say about each sequence, token, pair or choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from plmcore import losses
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.criteria.criterion import Batch, Criterion, Term, Terms, needed
from plmcore.models.outputs import Output
from plmcore.nn.state import State

Tensors = dict[str, Tensor]


class Labelled(Criterion):
    """The model's own loss of `labels`: classes [B] or, of tokens, [B, T], -100 for none; numbers [B].

    The terms are named as the labels in the batch. A subclass says how it calls the model, what it counts,
    and which means it finds in the output.
    """

    def __init__(self, label_smoothing: float = 0.0, *, squares: bool = False):
        self.label_smoothing, self.squares = label_smoothing, squares

    def counts(self, batch: Batch) -> dict[str, int]:
        return {"labels": known(needed(self, batch, "labels"))}

    def __call__(self, model: Any, batch: Batch, state: State | None) -> tuple[Terms, State | None]:
        inputs = model.tensors(batch)
        return self.terms(self.predict(model, inputs), batch, inputs), state

    def predict(self, model: Any, inputs: Tensors) -> Output:
        """The output for a batch, which may have no labels."""
        if not self.label_smoothing:
            return model(**inputs)
        return model(**{name: t for name, t in inputs.items() if name != "labels"})

    def terms(self, out: Output, batch: Batch, inputs: Tensors) -> Terms:
        """Of an output of `predict`."""
        counts, means = self.counts(batch), self.means(out, inputs)
        if missing := [name for name in counts if means.get(name) is None]:
            raise ArgumentError(
                f"{type(self).__name__}: the model gives no loss of {missing[0]}; build it with a head "
                "that has one, or compute it: Trainer(..., criterion=)"
            )
        return {name: Term.of_mean(means[name], n) for name, n in counts.items()}

    def means(self, out: Output, inputs: Tensors) -> Mapping[str, Tensor]:
        """The mean of each term, by name."""
        if not self.label_smoothing:
            return out.losses
        labels = inputs["labels"]
        return {"labels": losses.cross_entropy(out.logits, labels, label_smoothing=self.label_smoothing)}


class Spans(Labelled):
    """labels [B, 2]: the first and the last token of the answer."""

    def predict(self, model: Any, inputs: Tensors) -> Output:
        inputs = dict(inputs)
        labels = inputs.pop("labels", None)
        if labels is not None:
            B = labels.shape[0]
            start, end = (ops.reshape(x, (B,)) for x in ops.split(labels, (1, 1), 1))
            inputs |= {"start_positions": start, "end_positions": end}
        return model(**inputs)


class WithText(Labelled):
    """Of decoders: the answer, and with a weight the next token of what they read (GPT-1's L2 + lambda L1).

    `answer` and `text`: what the model calls the labels of either.
    """

    def __init__(
        self, weight: float, answer: str = "labels", text: str = "lm_labels", *, squares: bool = False
    ):
        super().__init__(squares=squares)
        self.weight, self.answer, self.text = weight, answer, text

    def counts(self, batch: Batch) -> dict[str, int]:
        read = batch.get("attention_mask", np.ones_like(batch["input_ids"]))
        text = {"lm_labels": int(np.count_nonzero(read[..., 1:]))} if self.weight else {}
        return super().counts(batch) | text

    def predict(self, model: Any, inputs: Tensors) -> Output:
        inputs = dict(inputs)
        labels = inputs.pop("labels", None)
        if labels is not None:
            inputs |= {self.text: next_tokens(inputs)} if self.weight else {}
            inputs[self.answer] = labels
        return model(**inputs)

    def means(self, out: Output, inputs: Tensors) -> Mapping[str, Tensor]:
        found = {"labels": out.losses[self.answer]}
        if self.weight:
            found["lm_labels"] = ops.affine(out.losses[self.text], self.weight, 0.0)
        return found


def known(labels: np.ndarray) -> int:
    """How many labels there are: each row of numbers is one, -100 is none."""
    return labels.shape[0] if labels.dtype.kind == "f" else int(np.count_nonzero(labels != -100))


def next_tokens(inputs: Tensors) -> Tensor:
    """The ids as labels, -100 for padding."""
    ids, mask = inputs["input_ids"], inputs.get("attention_mask")
    if mask is None:
        return ids
    return ops.where(ops.cast(mask, "bool"), ids, ops.full((), -100, ids.dtype, like=ids))
