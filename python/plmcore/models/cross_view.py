"""Cross-View Training: a primary head learns from labels, and teaches auxiliary heads that see less.

    labelled text      cross-entropy of the primary head
    unlabelled text    sum over auxiliary heads j of KL(p || p_j), p the primary head's, constant

The auxiliary heads read a part of what the primary head reads: what stands before a word or what stands
behind it, in place of both. All of them share the body, which so learns from both kinds of text.

Shapes: B batch, T length, C width of a body, P width of a direction, L labels of a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from plmcore import losses, nn
from plmcore._core import ArgumentError, ShapeError, Tensor, ops
from plmcore.models.config import Config
from plmcore.models.outputs import Output
from plmcore.models.padding import Encoded

TAGGING, CLASSIFICATION = "tagging", "classification"
VIEWS = ("full", "forward", "backward", "future", "past")

Sums = dict[str, tuple[Tensor, Tensor]]  # by name: a sum, and how many things it is the sum of


class Predictor(nn.Module):
    """logits = W' act(W x + b) + b', act relu or none.  x [..., C] -> [..., L]"""

    def __init__(self, inputs: int, hidden: int, labels: int, activation: str = "relu"):
        draw = nn.init.xavier_uniform()
        self.hidden = nn.Linear(inputs, hidden, activation=activation, weight_init=draw)
        self.out = nn.Linear(hidden, labels, weight_init=draw)

    def __call__(self, x: Tensor) -> Tensor:
        """x [..., C] -> [..., L]"""
        return self.out(self.hidden(x))


class TaskHeads(nn.Module):
    """The heads of one task over the rows [forward; backward; bi] of a body, C wide, the first two P each.

    A subclass says what each head reads, and where it must agree with the primary head.
    """

    kind: ClassVar[str]

    def __init__(self, width: int, part: int, hidden: int, labels: int):
        """width: C; part: P"""
        self.parts = part, part, width - 2 * part
        self.primary = Predictor(width, hidden, labels)
        sizes = dict.fromkeys(VIEWS, part) | {"full": width}
        self.auxiliary = nn.ModuleDict(
            {v: Predictor(n, hidden, labels, "none" if v == "full" else "relu") for v, n in sizes.items()}
        )

    def seen(self, rows: Tensor) -> dict[str, Tensor]:
        """What each view is of a word: everything, its past or its future.  rows [..., C]"""
        forward, backward, _ = ops.split(rows, self.parts, rows.ndim - 1)
        return dict(full=rows, forward=forward, backward=backward, future=forward, past=backward)

    def logits(self, encoded: Encoded, words: Tensor) -> Tensor:
        """Of the primary head. words: bool [B, T]"""
        raise NotImplementedError

    def cross_entropy(self, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
        """The mean over labels."""
        raise NotImplementedError

    def divergences(self, encoded: Encoded, words: Tensor, teacher: Tensor) -> Sums:
        """KL(teacher || head) of each auxiliary head, and over how many it is summed."""
        raise NotImplementedError

    @staticmethod
    def counts(words: np.ndarray) -> dict[str, int]:
        """The same numbers of things, by view."""
        raise NotImplementedError


class TagHeads(TaskHeads):
    """A label of each word. `future` predicts the label of the next word from what stands before that,
    `past` the label of the word before from what stands behind that.
    """

    kind = TAGGING

    def logits(self, encoded: Encoded, words: Tensor) -> Tensor:
        return encoded.layout.unpack(self.primary(encoded.rows))  # [B, T, L]

    def cross_entropy(self, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
        return losses.cross_entropy(logits, labels, label_smoothing=smoothing)

    def divergences(self, encoded: Encoded, words: Tensor, teacher: Tensor) -> Sums:
        T, sums = words.shape[1], {}
        for view, x in self.seen(encoded.rows).items():
            logits, wanted, counted = encoded.layout.unpack(self.auxiliary[view](x)), teacher, words
            if view == "future":
                logits, wanted = ops.slice(logits, 1, 0, T - 1), ops.slice(teacher, 1, 1, T)
            elif view == "past":
                logits, wanted = ops.slice(logits, 1, 1, T), ops.slice(teacher, 1, 0, T - 1)
            if view in ("future", "past"):
                counted = ops.logical_and(ops.slice(words, 1, 0, T - 1), ops.slice(words, 1, 1, T))
            sums[view] = masked_sum(losses.kl_div(logits, wanted, reduction="none"), counted)
        return sums

    @staticmethod
    def counts(words: np.ndarray) -> dict[str, int]:
        n, pairs = int(words.sum()), int((words[:, 1:] & words[:, :-1]).sum())
        return {view: pairs if view in ("future", "past") else n for view in VIEWS}


class ClassHeads(TaskHeads):
    """A label of each text, from the mean over its words. `future` has read the first half forwards, `past`
    the second half backwards: what is left to predict is the rest.
    """

    kind = CLASSIFICATION

    def logits(self, encoded: Encoded, words: Tensor) -> Tensor:
        return self.primary(mean_over(encoded, encoded.rows, words))  # [B, L]

    def cross_entropy(self, logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
        labels = ops.reshape(labels, logits.shape[:1])
        return losses.cross_entropy(logits, labels, label_smoothing=smoothing)

    def divergences(self, encoded: Encoded, words: Tensor, teacher: Tensor) -> Sums:
        ones = ops.cast(words, "int64")
        before = ops.affine(ops.cumsum(ones, 1), 2, 0)  # twice the words up to here
        all_words = ops.sum(ones, 1, True)
        first = ops.logical_and(words, ops.less_equal(before, ops.affine(all_words, 1, 1)))
        second = ops.logical_and(words, ops.greater(before, all_words))
        read, texts, sums = {"future": first, "past": second}, all_words > 0, {}
        for view, x in self.seen(encoded.rows).items():
            logits = self.auxiliary[view](mean_over(encoded, x, read.get(view, words)))
            apart = ops.reshape(losses.kl_div(logits, teacher, reduction="none"), texts.shape)  # [B, 1]
            sums[view] = masked_sum(apart, texts)
        return sums

    @staticmethod
    def counts(words: np.ndarray) -> dict[str, int]:
        return dict.fromkeys(VIEWS, int(words.any(1).sum()))


KINDS: dict[str, type[TaskHeads]] = {kind.kind: kind for kind in (TagHeads, ClassHeads)}


def masked_sum(values: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of the values that count, and how many there are.  [...] each, counted bool"""
    return ops.sum(ops.masked_fill(values, ops.logical_not(counted), 0.0)), ops.sum(counted)


def mean_over(encoded: Encoded, rows: Tensor, words: Tensor) -> Tensor:
    """The mean of the rows of some words; 0 without a word.  words bool [B, T] -> [B, C]"""
    x = encoded.layout.unpack(rows)  # [B, T, C]
    share = ops.cast(words, x.dtype)
    n = ops.sum(share, 1, True)  # [B, 1]
    share = ops.div(share, ops.maximum(n, ops.full((), 1.0, x.dtype, like=x)))
    B, T = words.shape
    return ops.reshape(ops.matmul(ops.reshape(share, (B, 1, T)), x), (B, x.shape[2]))


class CrossView(nn.Module):
    """A body with the heads of a task and, where the config has `tasks`, of further ones.

    The first task is the model's own: its logits and loss are what a call gives. The body has encode(...,
    dropout=) and words(...), which says what of a batch is a word.
    """

    kind: ClassVar[str]

    def __init__(self, config: Config, body: Any, part: int, hidden: int):
        """part: P, the width of a direction; hidden: of the heads"""
        self.config, self.body = config, body
        sizes = [(self.kind, config.num_labels), *((t["task"], len(t["labels"])) for t in config.tasks)]
        self.heads = nn.ModuleList(KINDS[kind](config.width, part, hidden, labels) for kind, labels in sizes)

    @property
    def primary(self) -> Predictor:
        """The head that learns from labels."""
        return self.heads[0].primary

    @property
    def auxiliary(self) -> nn.ModuleDict:
        """The heads that learn from the primary head, by view."""
        return self.heads[0].auxiliary

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of all tasks, the model's own first."""
        return (self.config.task_name, *(task["name"] for task in self.config.tasks))

    def __call__(
        self,
        input_ids: Tensor,
        char_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *,
        labels: Tensor | None = None,
        task: int = 0,
        **inputs: Any,
    ) -> Output:
        encoded, logits = self.predicted(input_ids, char_ids, attention_mask, task, **inputs)
        loss = None if labels is None else self.heads[task].cross_entropy(logits, labels)
        return encoded.output(logits=logits, loss=loss)

    def predicted(
        self, input_ids: Tensor, char_ids: Tensor | None, mask: Tensor | None, task: int, **inputs: Any
    ) -> tuple[Encoded, Tensor]:
        encoded = self.body.encode(input_ids, char_ids, mask, **inputs)
        return encoded, self.heads[task].logits(encoded, self.body.words(input_ids, mask))

    def labelled_loss(
        self,
        input_ids: Any,
        char_ids: Any,
        labels: Any,
        attention_mask: Any = None,
        *,
        task: int = 0,
    ) -> Tensor:
        """The smoothed cross-entropy of the primary head.

        input_ids [B, T]; char_ids [B, T, W]; labels [B, T], -100 for none, or [B] of classes
        """
        ids, chars, mask, right = self._given(input_ids, char_ids, attention_mask, labels)
        _, logits = self.predicted(ids, chars, mask, task)
        return self.heads[task].cross_entropy(logits, right, self.config.label_smoothing)

    def unlabelled_loss(self, input_ids: Any, char_ids: Any, attention_mask: Any = None) -> Tensor:
        """The sum over tasks and auxiliary heads of KL(primary || auxiliary), each a mean over words, or
        texts. No gradient reaches a primary head.  input_ids [B, T]; char_ids [B, T, W]
        """
        whole = None
        for total, n in self.unlabelled_sums(input_ids, char_ids, attention_mask).values():
            n = ops.maximum(ops.cast(n, total.dtype), ops.full((), 1.0, total.dtype, like=total))
            mean = ops.div(total, n)
            whole = mean if whole is None else ops.add(whole, mean)
        assert whole is not None
        return whole

    def unlabelled_sums(self, input_ids: Any, char_ids: Any, attention_mask: Any = None) -> Sums:
        """The parts of the loss by "task view", as sums and counts."""
        ids, chars, mask, _ = self._given(input_ids, char_ids, attention_mask, None)
        words = self.body.words(ids, mask)
        with nn.inference():  # without dropout, and constant
            encoded = self.body.encode(ids, chars, mask)
            taught = [heads.logits(encoded, words) for heads in self.heads]
        encoded = self.body.encode(ids, chars, mask, dropout=self.config.unlabelled_dropout)
        return {
            f"{task} {view}": found
            for task, heads, teacher in zip(self.tasks, self.heads, taught, strict=True)
            for view, found in heads.divergences(encoded, words, teacher).items()
        }

    def unlabelled_counts(self, batch: Mapping[str, np.ndarray]) -> dict[str, int]:
        """How many things each of these sums is of, before anything is computed."""
        words = self.body.words_of(batch["input_ids"], batch.get("attention_mask"))
        return {
            f"{task} {view}": n
            for task, heads in zip(self.tasks, self.heads, strict=True)
            for view, n in heads.counts(words).items()
        }

    def _given(self, *inputs: Any) -> tuple[Any, ...]:
        """Arrays and lists as tensors."""
        return tuple(
            x if x is None or isinstance(x, Tensor) else Tensor(np.asarray(x), device=self.device)
            for x in inputs
        )


def check_tasks(config: Config) -> None:
    """`tasks` of a config: a name of its own, a kind and labels each."""
    seen = {config.task_name}
    for task in config.tasks:
        known = isinstance(task, Mapping) and {*task} >= {"name", "task", "labels"}
        if not known or task["task"] not in KINDS or not isinstance(task["labels"], list | tuple):
            config.refuse(
                "tasks",
                f'must be objects {{"name": ..., "task": {" or ".join(KINDS)}, "labels": [...]}}',
            )
        if not isinstance(task["name"], str) or not task["name"] or task["name"] in seen:
            config.refuse("tasks", "must have a name of its own each")
        if not task["labels"] or not all(isinstance(label, str) for label in task["labels"]):
            config.refuse("tasks", "must have texts as labels, at least one each")
        seen.add(task["name"])


def alone(model: CrossView, task: int, heads: Mapping[str, Any]) -> Any:
    """The model of one of the tasks, with the same body and heads, not copies.

    heads: the family's, by the kind of their task
    """
    if not 0 <= task < len(model.heads):
        raise ArgumentError(f"there is no task {task}; there are {', '.join(model.tasks)}")
    chosen: TaskHeads = model.heads[task]
    view = object.__new__(heads[chosen.kind])
    config, extra, labels = model.config, dict(model.config.extra), model.config.num_labels
    if task:
        names = list(config.tasks[task - 1]["labels"])
        labels = len(names)
        extra |= {
            "id2label": {str(i): n for i, n in enumerate(names)},
            "label2id": {n: i for i, n in enumerate(names)},
        }
    view.config = config.replace(num_labels=labels, task_name=model.tasks[task], tasks=(), extra=extra)
    view.body, view.heads = model.body, nn.ModuleList([chosen])
    view.training = model.training
    return view


def check_chars(char_ids: Tensor, input_ids: Tensor) -> None:
    """char_ids must be whole numbers [B, T, W]."""
    if (
        char_ids.ndim != 3
        or char_ids.dtype not in ("int64", "int32")
        or any(
            isinstance(a, int) and isinstance(b, int) and a != b
            for a, b in zip(char_ids.shape, input_ids.shape)
        )
    ):
        raise ShapeError(
            f"char_ids must be whole numbers [batch, length, characters] like input_ids "
            f"{list(input_ids.shape)}, got {char_ids.dtype} {list(char_ids.shape)}"
        )
