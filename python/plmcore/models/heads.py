"""Heads that families share, and the losses the published classes compute from labels.

A body has encode(input_ids, ..., reads=()) -> Encoded and, where a head needs one vector per sequence,
pool(Encoded) -> [B, C].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from plmcore import losses, nn
from plmcore._core import ShapeError, Tensor, ops
from plmcore.models.config import Config
from plmcore.models.labels import PLACE, placed
from plmcore.models.outputs import Output
from plmcore.models.padding import EVERYWHERE, FIRST, Encoded, Reads

# ---- losses ----


def classification_loss(config: Config, logits: Tensor, labels: Tensor) -> Tensor:
    """Of one answer per sequence: the squared error of one label, cross-entropy of int labels, else one yes
    or no per label.  logits [B, L]
    """
    kind = config.problem_type
    if kind is None:
        kind = "single_label" if labels.dtype in ("int64", "int32") else "multi_label"
        if config.num_labels == 1:
            kind = "regression"
    if kind.startswith("single_label"):
        return ops.cross_entropy(logits, ops.reshape(labels, logits.shape[:1]))
    labels = ops.reshape(ops.cast(labels, logits.dtype), logits.shape)
    return (
        losses.mse(logits, labels)
        if kind == "regression"
        else losses.binary_cross_entropy_with_logits(logits, labels)
    )


def span_loss(
    start_logits: Tensor, end_logits: Tensor, start_positions: Tensor, end_positions: Tensor
) -> Tensor:
    """The mean of two cross-entropies over positions; an answer beyond the text does not count.
    logits [B, T]; positions [B]
    """
    B, T = start_logits.shape

    def one(logits: Tensor, positions: Tensor) -> Tensor:
        positions = ops.reshape(positions, (B,))
        zero, ignored = (ops.full((), n, positions.dtype, like=positions) for n in (0, -100))
        length = ops.cast(ops.sum(ops.full((T,), 1, "int64", like=positions)), positions.dtype)
        inside = ops.less(positions, length)
        return ops.cross_entropy(logits, ops.where(inside, ops.maximum(positions, zero), ignored))

    return ops.affine(ops.add(one(start_logits, start_positions), one(end_logits, end_positions)), 0.5, 0.0)


def labelled_loss(encoded: Encoded, labels: Tensor, project: Callable[[Tensor], Tensor]) -> Tensor:
    """Cross-entropy of the labelled positions, whose logits alone are computed.  labels [B, T], -100 for
    none; project [M, C] -> [M, V]
    """
    rows, labels = encoded.layout.labelled(encoded.rows, labels)
    return ops.cross_entropy(project(rows), labels)


def two_losses(
    encoded: Encoded,
    labels: Tensor | None,
    project: Callable[[Tensor], Tensor],
    answers: Tensor,
    **of_sequences: Tensor | None,
) -> dict[str, Any]:
    """Fields of an Output: the loss of tokens plus that of one answer per sequence, by the name of its
    labels; none unless both have labels.  answers [B, L]
    """
    ((name, right),) = of_sequences.items()
    if labels is None or right is None:
        return {}
    tokens = labelled_loss(encoded, labels, project)
    sequences = ops.cross_entropy(answers, ops.reshape(right, answers.shape[:1]))
    return {"loss": ops.add(tokens, sequences), "losses": {"labels": tokens, name: sequences}}


def language_model_output(
    encoded: Encoded,
    labels: Tensor | None,
    project: Callable[[Tensor], Tensor],
    name: str = "logits",
    **fields: Any,
) -> Output:
    """Loss and logits of a language model's head; with labels the logits wait until they are read."""

    def logits() -> Tensor:
        return encoded.layout.unpack(project(encoded.rows))  # [B, T, V]

    if labels is None:
        return encoded.output(**{name: logits()}, **fields)
    return encoded.output(**{name: logits}, loss=labelled_loss(encoded, labels, project), **fields)


# ---- heads ----

H = TypeVar("H", bound=nn.Module)


def bound(
    name: str, kind: Callable[..., H], body: Callable[[Any], Any], *settings: Any, **constants: Any
) -> Callable[[Any], H]:
    """A head as a family declares it: the class `kind` under a name of the family's, made of a config alone.

    `kind` gets the config, body(config) and the settings: texts of names of the config's, and other values.
    constants: those of the class that are the family's own (LABELS, PREFIX, NAMES).
    """
    general: Any = kind

    def make(self: Any, config: Any) -> None:
        values: list[Any] = []
        for s in settings:
            values += [getattr(config, name) for name in s.split()] if isinstance(s, str) else [s]
        general.__init__(self, config, body(config), *values)

    module = getattr(body, "func", body).__module__  # the family's, also where the body is a partial
    made: Any = type(name, (general,), {"__init__": make, "__module__": module, **constants})
    return made


class Predicts(nn.Module):
    """Heads that predict tokens: LABELS says what their labels mean. One gives body and logits."""

    LABELS: tuple[str, ...]
    REMEMBERS: ClassVar[bool] = False  # the body takes the mems of the text before, and gives those after
    CARRIES: ClassVar[bool] = False  # the same of a recurrence: state, and out.state
    body: Any

    def logits(self, rows: Tensor) -> Tensor:
        """rows -> [..., V]"""
        raise NotImplementedError

    def scored(self, input_ids: Tensor, attention_mask: Tensor | None, labels: Tensor) -> Encoded:
        """The rows whose logits predict the labels, which stand where they are predicted.  [B, T] each"""
        return self.body.encode(input_ids, attention_mask, reads=(labels,))

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        labels = placed(self.LABELS[0], labels)
        encoded = self.body.encode(input_ids, **inputs, reads=(labels,))
        return language_model_output(encoded, labels, self.logits)


class MaskedLM(Predicts):
    """logits [B, T, V] of each place, by `predictions`, which is made of the config and the token table."""

    LABELS: tuple[str, ...] = (PLACE,)

    def __init__(self, config: Config, body: Any, predictions: Callable[[Any, nn.Embedding], nn.Module]):
        self.config, self.body = config, body
        self.predictions: Any = predictions(config, body.embeddings.tokens)

    def logits(self, rows: Tensor) -> Tensor:
        return self.predictions(rows)


class SequenceClassification(nn.Module):
    """logits [B, L] of each sequence, from the body's pooled vector;
    a head may have a pool(Encoded) -> [B, C] of its own.
    """

    def __init__(self, config: Config, body: Any, width: int, dropout: float, weight_init: nn.init.Init):
        self.config, self.body = config, body
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, config.num_labels, weight_init=weight_init)

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        encoded: Encoded = self.body.encode(input_ids, **inputs, reads=(FIRST,))
        logits = self.classifier(self.dropout(self.pool(encoded)))  # [B, L]
        return encoded.output(
            logits=logits, loss=None if labels is None else classification_loss(self.config, logits, labels)
        )

    def pool(self, encoded: Encoded) -> Tensor:
        return self.body.pool(encoded)


class TokenClassification(nn.Module):
    """logits [B, T, L] of each token."""

    def __init__(self, config: Config, body: Any, width: int, dropout: float, weight_init: nn.init.Init):
        self.config, self.body = config, body
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, config.num_labels, weight_init=weight_init)

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        encoded: Encoded = self.body.encode(input_ids, **inputs, reads=(labels,))
        encoded.rows = self.dropout(encoded.rows)
        return language_model_output(encoded, labels, self.classifier)


class QuestionAnswering(nn.Module):
    """start_logits and end_logits [B, T] of an answer;
    they compete over all positions, so that padding runs too.
    """

    def __init__(
        self, config: Config, body: Any, width: int, weight_init: nn.init.Init, dropout: float = 0.0
    ):
        self.config, self.body = config, body
        self.dropout = nn.Dropout(dropout)
        self.span = nn.Linear(width, 2, weight_init=weight_init)

    def __call__(
        self,
        input_ids: Tensor,
        *,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        **inputs: Any,
    ) -> Output:
        encoded = self.body.encode(input_ids, **inputs, reads=(EVERYWHERE,))
        both = self.span(self.dropout(encoded.rows))  # [B, T, 2]
        start, end = (ops.reshape(x, input_ids.shape) for x in ops.split(both, (1, 1), 2))  # [B, T]
        loss = None
        if start_positions is not None and end_positions is not None:
            loss = span_loss(start, end, start_positions, end_positions)
        return encoded.output(loss=loss, start_logits=start, end_logits=end)


class MultipleChoice(nn.Module):
    """logits [B, K] of K choices, each a sequence of its own.  input_ids and what goes with them [B, K, T]"""

    def __init__(self, config: Config, body: Any, width: int, dropout: float, weight_init: nn.init.Init):
        self.config, self.body = config, body
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, 1, weight_init=weight_init)

    def __call__(self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs: Any) -> Output:
        if input_ids.ndim != 3:
            raise ShapeError(
                f"multiple-choice: input_ids must be [batch, choices, length], got {list(input_ids.shape)}"
            )
        B, K, T = input_ids.shape
        flat = {
            name: ops.reshape(x, (B * K, T)) if isinstance(x, Tensor) else x for name, x in inputs.items()
        }
        ids = ops.reshape(input_ids, (B * K, T))
        encoded = self.body.encode(ids, **flat, reads=self.reads(ids))
        logits = ops.reshape(self.classifier(self.dropout(self.pool(encoded))), (B, K))
        return encoded.output(
            logits=logits, loss=None if labels is None else ops.cross_entropy(logits, labels)
        )

    def reads(self, ids: Tensor) -> Reads:
        return (FIRST,)

    def pool(self, encoded: Encoded) -> Tensor:
        return self.body.pool(encoded)
