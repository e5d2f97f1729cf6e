"""What a training step computes: named terms, each a sum and how many things it is the sum of.

The loss of a step is the sum over names of (sum over the step) / (count over the step). So the parts of a
large batch, whatever each of them has, give its loss and its gradient, and so will ranks.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from plmcore import nn
from plmcore._core import ArgumentError, Tensor, ops
from plmcore.nn.state import State

Batch = Mapping[str, np.ndarray]
Counts = Mapping[str, int]

# Of a batch: whether it goes on where the one before ended. It does unless it says no.
CONTINUES = "continues"
# Of a batch: by how much the learning rate of its step is multiplied, once for the step.
RATE = "rate"


class Term:
    """A sum over `count` things, a scalar tensor.

    One that is made of a mean keeps that: the mean of the whole step is then this mean, bit for bit.
    """

    def __init__(self, sum: Tensor, count: int):
        self.count = count
        self._value, self._times = sum, 1

    @classmethod
    def of_mean(cls, mean: Tensor, count: int) -> Term:
        """The term whose sum is count * mean."""
        term = cls(mean, count)
        term._times = count
        return term

    @property
    def sum(self) -> Tensor:
        """The sum, a scalar."""
        return self._value if self._times == 1 else ops.affine(self._value, self._times, 0.0)

    def over(self, total: int) -> Tensor:
        """sum / total: its share of the mean over `total` things."""
        share = self._times / total
        return self._value if share == 1 else ops.affine(self._value, share, 0.0)

    def item(self) -> float:
        """The sum as a number; 0 of nothing, whose mean is none."""
        return self._value.item() * self._times if self.count else 0.0


Terms = Mapping[str, Term]


class Criterion:
    """A subclass gives counts and __call__; one that carries a state also `state`."""

    squares = False  # whether it is a mean of squares, not of negative log-probabilities

    def counts(self, batch: Batch) -> dict[str, int]:
        """How many things each term is the sum of, before anything is computed.

        A step that has several batches must know it of all of them first.
        """
        raise NotImplementedError

    def __call__(self, model: Any, batch: Batch, state: State | None) -> tuple[Terms, State | None]:
        """The terms of a batch by name, and the state for the next one.

        `state` is what the batch before returned, without its gradients; None for the first.
        """
        raise NotImplementedError

    def state(self, tensors: Mapping[str, Tensor]) -> State:
        """The state whose tensors() a checkpoint has kept."""
        raise ArgumentError(
            f"{type(self).__name__} carries no state, and the checkpoint has one: {', '.join(tensors)}; "
            f"resume with the criterion that the run began with, or give this one a method state(tensors)"
        )


def run(
    criterion: Criterion, model: nn.Module, batch: Batch, state: State | None = None
) -> tuple[Terms, State | None]:
    """The terms of a batch, which are what the criterion counts, and the state for the next one."""
    counts = counted(criterion, batch)
    goes_on = bool(batch.get(CONTINUES, True))
    inputs = {name: array for name, array in batch.items() if name not in (CONTINUES, RATE)}
    terms, after = criterion(model, inputs, state if goes_on else None)
    found = {name: term.count for name, term in terms.items()}
    if found != counts:
        raise ArgumentError(
            f"{type(criterion).__name__}: its terms must be what counts(batch) says, {counts}, got {found}"
        )
    return terms, None if after is None else after.detach()


def counted(criterion: Criterion, batch: Batch) -> dict[str, int]:
    """What the criterion counts in a batch: at least one term."""
    counts = criterion.counts(batch)
    if not counts:
        raise ArgumentError(
            f"{type(criterion).__name__} has no terms for a batch of {', '.join(batch) or 'nothing'}: return "
            "{name: count} from counts and {name: Term(sum, count)} from __call__, one for each loss"
        )
    return counts


def added(counts: Iterable[Counts]) -> Counts:
    """The counts of several batches together."""
    total: collections.Counter[str] = collections.Counter()
    for some in counts:
        total.update(some)
    return total


def loss(terms: Terms, totals: Counts) -> Tensor:
    """What these terms bring to the loss of a step with these totals: the sum of sum / total."""
    parts = [term.over(totals[name]) for name, term in terms.items() if term.count]
    if not parts:  # the mean over no label is not a number
        none = next(iter(terms.values())).sum
        return ops.full((), 0.0, none.dtype, like=none)
    whole = parts[0]
    for part in parts[1:]:
        whole = ops.add(whole, part)
    return whole


class Sums:
    """The terms of many batches as numbers, for an evaluation."""

    def __init__(self) -> None:
        self.sums: dict[str, float] = {}
        self.counts: dict[str, int] = {}

    def add(self, terms: Terms) -> None:
        """Takes in the terms of another batch."""
        for name, term in terms.items():
            self.sums[name] = self.sums.get(name, 0.0) + term.item()
            self.counts[name] = self.counts.get(name, 0) + term.count

    def loss(self) -> float | None:
        """The sum of the means; None where nothing was counted."""
        found = [self.sums[name] / n for name, n in self.counts.items() if n]
        return sum(found) if found else None


def needed(criterion: Criterion, batch: Batch, name: str) -> np.ndarray:
    """What a criterion cannot do without."""
    if name not in batch:
        raise ArgumentError(
            f"{type(criterion).__name__}: a batch must have {name}; this one has {', '.join(batch)}. Another "
            "loss is another criterion: Trainer(..., criterion=)"
        )
    return batch[name]
