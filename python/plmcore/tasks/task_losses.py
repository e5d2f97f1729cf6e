"""Losses of tasks, as the training loop asks for them: a batch has `labels`, whatever the model calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore import losses, nn
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.models import causal, heads
from plmcore.models.outputs import Output
from plmcore.train.batching import Batch, MeanLoss


class TaskLoss(MeanLoss):
    """The model's own loss of `labels`. Without labels it is None."""

    def count(self, part: Batch) -> int:
        """How many labels the loss is the mean of."""
        labels = part["labels"]
        return labels.shape[0] if labels.dtype.kind == "f" else int(np.count_nonzero(labels != -100))

    def shares(self, parts: Sequence[Batch]) -> list[tuple[float, float]]:
        labels, rows = [self.count(p) for p in parts], [p["input_ids"].shape[0] for p in parts]
        return [(n / max(1, sum(labels)), r / sum(rows)) for n, r in zip(labels, rows, strict=True)]

    def plain(self, inputs: dict[str, Tensor]) -> tuple[Output, Any]:
        out = self.model(**inputs)
        return out, out.loss


class SmoothedLoss(TaskLoss):
    """Of classes, each with a share of the other ones' certainty."""

    def __init__(self, model: nn.Module, smoothing: float):
        super().__init__(model)
        self.smoothing = smoothing

    def plain(self, inputs: dict[str, Tensor]) -> tuple[Output, Any]:
        labels = inputs.get("labels")
        out = self.model(**{name: t for name, t in inputs.items() if name != "labels"})
        if labels is None:
            return out, None
        return out, losses.cross_entropy(out.logits, labels, label_smoothing=self.smoothing)


class SpanLoss(TaskLoss):
    """labels [B, 2]: the first and the last token of the answer."""

    def plain(self, inputs: dict[str, Tensor]) -> tuple[Output, Any]:
        inputs = dict(inputs)
        labels = inputs.pop("labels", None)
        if labels is not None:
            B = labels.shape[0]
            start, end = (ops.reshape(x, (B,)) for x in ops.split(labels, (1, 1), 1))
            inputs |= {"start_positions": start, "end_positions": end}
        out = self.model(**inputs)
        return out, out.loss


class ChoiceLoss(TaskLoss):
    """Of decoders with a head for choices: which one is right, and with a weight the next token of all of them (GPT-1's L2 + lambda L1)."""

    def __init__(self, model: nn.Module, weight: float = 0.0):
        super().__init__(model)
        self.weight = weight

    def plain(self, inputs: dict[str, Tensor]) -> tuple[Output, Any]:
        inputs = dict(inputs)
        labels = inputs.pop("labels", None)
        if labels is None:
            return self.model(**inputs), None
        if self.weight:
            inputs["labels"] = next_tokens(inputs)
        out = self.model(**inputs, mc_labels=labels)
        loss = out.mc_loss
        return out, ops.add(loss, ops.affine(out.loss, self.weight, 0.0)) if self.weight else loss


class DecoderLoss(TaskLoss):
    """Of decoders that classify from the last token. GPT-1's: with a weight also the next token of the text, L2 + lambda L1; `both`: input_ids
    [B, 2, T] have a pair in either order, whose last states are added."""

    def __init__(self, model: nn.Module, weight: float = 0.0, both: bool = False):
        super().__init__(model)
        if not isinstance(model, causal.LastTokenClassification):
            raise ArgumentError(
                f"task.lm_weight and task.both_orders are for decoders that classify, and this is {self.model.config.model_type}; leave them"
            )
        self.weight, self.both = weight, both

    def plain(self, inputs: dict[str, Tensor]) -> tuple[Output, Any]:
        model, T = self.model, inputs["input_ids"].shape[-1]
        labels = inputs.get("labels")
        flat = {
            k: ops.reshape(t, (int(t.size) // int(T), T)) for k, t in inputs.items() if k != "labels"
        }  # [B, T] or [2 B, T]
        ids = flat["input_ids"]
        last = causal.last_token(ids, model.config.pad_token_id)
        following = heads.next_token_labels(next_tokens(flat)) if self.weight and labels is not None else None
        encoded = model.body.encode(**flat, reads=(causal.marks(last, T), following))
        states = causal.rows_at(encoded, last)  # [B, C]
        if self.both:
            states = ops.sum(ops.reshape(states, (ids.shape[0] // 2, 2, states.shape[1])), 1)
        logits = model.score(states)  # [B, L]
        if labels is None:
            return Output(logits=logits), None
        loss = total = heads.classification_loss(model.config, logits, labels)
        if following is not None:
            tokens = model.body.embeddings.tokens.weight
            text = heads.labelled_loss(encoded, following, lambda rows: ops.linear(rows, tokens))
            total = ops.add(loss, ops.affine(text, self.weight, 0.0))
        return Output(logits=logits, loss=loss), total


def next_tokens(inputs: dict[str, Tensor]) -> Tensor:
    """The ids as labels, -100 for padding."""
    ids, mask = inputs["input_ids"], inputs.get("attention_mask")
    if mask is None:
        return ids
    return ops.where(ops.cast(mask, "bool"), ids, ops.full((), -100, ids.dtype))
