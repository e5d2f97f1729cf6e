"""What labels mean, written down once.

A head lists in LABELS the kinds that it takes, an objective names in `labels` the one that it gives, and a
criterion (plmcore.criteria) makes a loss of them. `placed` is the only code that moves labels: heads use it
for out.loss, criteria for what they compute from logits.

    next             labels [B, T] are input_ids themselves, -100 where nothing is predicted. The head moves
                     them: the token at t is predicted at t - 1. Nobody else does; moved twice, they would
                     be the tokens after the next ones.
    following        labels [B, T]: at t the token that follows. The caller has moved them.
    place            labels [B, T]: what stands at t of the text, where input_ids hides it. Nothing is moved.
    next-sentence    the same, and next_sentence_label [B].
    sentence-order   the same, and sentence_order_label [B].
    targets          labels [B, M]: what stands where target_mapping [B, M, T] points. Nothing is moved.
    decoder          labels [B, T]: what the decoder writes. Its input is decoder_input_ids; without those the
                     head makes it of the labels.
    blanks           labels [B, T]: behind a text the pieces for its blanks, each token where it is predicted.
                     The objective has moved them.
    bidirectional    forward_labels and backward_labels [B, T]: at t the token that follows, and the one
                     before. The objective has moved them. The head gives forward_logits and backward_logits.
                     With backward_input_ids the second direction has a text of its own.
    text             beside the labels of a task: lm_labels like those of next.
    choice           beside those of next: mc_labels [B], the choice that is right.

A kind that an objective gives and no head takes yet: pairs (no labels).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, overload

from plmcore import nn
from plmcore._core import ShapeError, Tensor, ops
from plmcore.models.outputs import Output

if TYPE_CHECKING:
    from plmcore.models import Model

NEXT, FOLLOWING, PLACE, TARGETS, DECODER = "next", "following", "place", "targets", "decoder"
NEXT_SENTENCE, SENTENCE_ORDER = "next-sentence", "sentence-order"
BLANKS, BIDIRECTIONAL, PAIRS = "blanks", "bidirectional", "pairs"
OF_TOKENS = (NEXT, FOLLOWING, PLACE, TARGETS, DECODER, NEXT_SENTENCE, SENTENCE_ORDER, BLANKS)
TEXT, CHOICE = "text", "choice"

# Labels -> the logits they belong to
OF_SEQUENCES = {"next_sentence_label": "seq_relationship_logits", "sentence_order_label": "sop_logits"}
DIRECTIONS = {"forward_labels": "forward_logits", "backward_labels": "backward_logits"}


def taken(head: nn.Module | type[nn.Module]) -> tuple[str, ...]:
    """The kinds of labels that a head, or its class, takes; none where it has no loss of tokens."""
    return getattr(head, "LABELS", ())


@overload
def placed(kind: str, labels: Tensor) -> Tensor: ...
@overload
def placed(kind: str, labels: None) -> None: ...
def placed(kind: str, labels: Tensor | None) -> Tensor | None:
    """Each label where the logits predict it, -100 elsewhere.  [B, T]"""
    if labels is None or kind != NEXT:
        return labels
    if labels.ndim != 2:
        raise ShapeError(f"labels must be [batch, length] like input_ids, got {list(labels.shape)}")
    return ops.pad(ops.slice(labels, 1, 1, labels.shape[1]), [0, 0], [0, 1], -100)


def without_loss(model: Model, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inputs without any labels, with what the head would make of them."""
    rest = {k: t for k, t in inputs.items() if k != "labels" and not k.endswith("_label")}
    if DECODER in taken(model) and "decoder_input_ids" not in rest:
        rest["decoder_input_ids"] = model.body.shifted(inputs["labels"])
    return rest


def token_logits(out: Output) -> Tensor:
    """Of the tokens that labels name.  [B, T, V]"""
    return out.prediction_logits if "prediction_logits" in out else out.logits
