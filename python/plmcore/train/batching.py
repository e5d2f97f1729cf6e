"""What the loop asks of a batch: how it is cut, what it weighs, how the parts make one loss.

`batches[step]` is a dict of arrays, or a list of such dicts whose gradients are added up before the parameters move.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from plmcore import losses, nn
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.models import labels as kinds
from plmcore.models.outputs import Output

if TYPE_CHECKING:
    from plmcore.models import Model

Batch = Mapping[str, np.ndarray]

# Labels of whole sequences -> the logits they belong to. The model's loss is that of `labels` plus the means of these.
PER_SEQUENCE = {"next_sentence_label": "seq_relationship_logits", "sentence_order_label": "sop_logits"}


class Batches(Protocol):
    def __getitem__(self, step: int) -> Batch | Sequence[Batch]: ...


class Accumulated:
    """`times` batches of another as one, for gradients that do not fit the memory at once; a function of the step makes a ramp.

    Accumulated(batches, 4)[0] is [batches[0], ..., batches[3]].
    """

    def __init__(self, batches: Batches, times: int | Callable[[int], int]):
        self.batches, self.times = batches, times
        self._firsts = [0]

    def __getitem__(self, step: int) -> list[Batch]:
        """The list of batches of a step."""
        return [cast(Batch, self.batches[i]) for i in range(self.first(step), self.first(step + 1))]

    def first(self, step: int) -> int:
        """The inner batch that a step begins with."""
        if isinstance(self.times, int):
            return step * self.times
        while len(self._firsts) <= step:
            times = self.times(len(self._firsts) - 1)
            if times < 1:
                raise ArgumentError(
                    f"Accumulated: step {len(self._firsts) - 1} has {times} batches, at least 1 must be"
                )
            self._firsts.append(self._firsts[-1] + times)
        return self._firsts[step]


class Ahead:
    """Another's batches, the next of which is made by a thread while one is used."""

    def __init__(self, batches: Batches):
        self.batches = batches
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="plmcore batches")
        self._next: tuple[int, concurrent.futures.Future[Any]] | None = None

    def __getitem__(self, step: int) -> Batch | Sequence[Batch]:
        ready = self._next is not None and self._next[0] == step
        batch: Batch | Sequence[Batch] = self._next[1].result() if ready and self._next else self.batches[step]
        self._next = (step + 1, self._thread.submit(self.batches.__getitem__, step + 1))
        return batch

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)


def ramp(start: int, end: int, steps: int) -> Callable[[int], int]:
    """A number of batches that grows evenly from `start` to `end` over `steps` steps (GPT-3)."""
    return lambda step: start + (end - start) * min(step, steps) // max(1, steps)


def tokens_of(batch: Batch) -> int:
    """Tokens that the model reads: padding does not count, a decoder's input does."""
    seen = batch.get("attention_mask")
    own = batch["input_ids"].size if seen is None else int(np.count_nonzero(seen))
    target = batch.get("decoder_input_ids")
    if target is None and "decoder_attention_mask" not in batch:
        return own
    mask = batch.get("decoder_attention_mask")
    return own + (int(np.count_nonzero(mask)) if mask is not None else 0 if target is None else target.size)


def labels_of(model: nn.Module, batch: Batch) -> int:
    """How many labels the model's loss is the mean of. Heads that move labels do not predict the first token."""
    labels = batch["labels"]
    if labels.dtype.kind == "f":
        return labels.shape[0]
    if kinds.NEXT in kinds.taken(model):
        labels = labels[..., 1:]
    return int(np.count_nonzero(labels != -100))


class MeanLoss:
    """The model's loss over all labels of the parts together, whatever each of them has: 4 parts of 8 rows give the gradient of 32 rows."""

    state: Any = None  # what is carried from batch to batch, see train.carrying

    def __init__(self, model: nn.Module, label_smoothing: float = 0.0):
        self.model = cast("Model", model)
        self.label_smoothing = label_smoothing

    @property
    def squares(self) -> bool:
        """Whether it is a mean of squares, not of negative log-probabilities."""
        return getattr(getattr(self.model, "config", None), "problem_type", None) == "regression"

    def live_state(self) -> dict[str, Any]:
        """The state as arrays, for a checkpoint; empty where there is none."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """That of a checkpoint."""

    def shares(self, parts: Sequence[Batch]) -> list[tuple[float, float]]:
        """Of each part: its share of the labels, and of the sequences."""
        labels, rows = [labels_of(self.model, p) for p in parts], [p["input_ids"].shape[0] for p in parts]
        return [(n / max(1, sum(labels)), r / sum(rows)) for n, r in zip(labels, rows, strict=True)]

    def __call__(self, part: Batch, share: tuple[float, float]) -> tuple[Tensor, Output]:
        """The part's contribution to the loss."""
        of_labels, of_rows = share
        inputs = {name: Tensor(a) for name, a in part.items()}
        out, loss = self.smoothed(inputs) if self.label_smoothing else self.plain(inputs)
        if share == (1.0, 1.0):
            return loss, out
        extra = [
            ops.cross_entropy(out[logits], ops.reshape(inputs[name], (inputs[name].size,)))
            for name, logits in PER_SEQUENCE.items()
            if name in part
        ]
        if of_labels == 0:  # the mean over no label is not a number
            terms = [ops.affine(e, of_rows, 0.0) for e in extra]
        else:
            terms = [ops.affine(loss, of_labels, 0.0), *(ops.affine(e, of_rows - of_labels, 0.0) for e in extra)]
        total = terms[0] if terms else ops.full((), 0.0, loss.dtype)
        for term in terms[1:]:
            total = ops.add(total, term)
        return total, out

    def plain(self, inputs: dict[str, Tensor]) -> tuple[Output, Any]:
        """The model's output for a batch, and its own loss."""
        out = self.forward(inputs)
        return out, out.loss

    def forward(self, inputs: dict[str, Tensor]) -> Output:
        """The model's output for a batch."""
        return self.model(**inputs)

    def smoothed(self, inputs: dict[str, Tensor]) -> tuple[Output, Tensor]:
        """Labels of tokens share some of their certainty with all others; those of sequences do not."""
        out = self.forward(kinds.without_loss(self.model, inputs))
        labels = kinds.placed(self.model, inputs["labels"])
        loss = losses.cross_entropy(kinds.token_logits(out), labels, label_smoothing=self.label_smoothing)
        for name, logits in PER_SEQUENCE.items():
            if name in inputs:
                loss = ops.add(loss, ops.cross_entropy(out[logits], ops.reshape(inputs[name], (inputs[name].size,))))
        return out, loss


def check_batch(batch: Any) -> list[Batch]:
    """The parts of what `batches[step]` gave."""
    parts = [batch] if isinstance(batch, Mapping) else list(batch)
    if not parts:
        raise ArgumentError("train: a step has no batch")
    for part in parts:
        if missing := [name for name in ("input_ids", "labels") if name not in part]:
            raise ArgumentError(f"train: a batch must have {' and '.join(missing)}; this one has {', '.join(part)}")
    return parts
