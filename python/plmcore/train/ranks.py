"""Ranks: processes that share the batch of a step.

    with ranks.joined(group):
        plmcore.pretrain(...)

Each rank has its own part of the batch and the same parameters. What they must agree on goes through their
Group: the counts of a step's terms before the forward pass, the gradients before their norm.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from plmcore._core import Tensor

Number = TypeVar("Number", int, float)


class Group:
    """`size` processes, of which this is `rank`; this one is alone.

    A subclass gives the three methods. All ranks call them in the same order, and get the same bits.
    """

    rank, size = 0, 1

    def sum(self, values: Mapping[str, Number]) -> Mapping[str, Number]:
        """Of all ranks, by name; what a rank does not name counts as 0."""
        return values

    def sum_gradients(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Of all ranks, one by one; None where no rank has one. Row-sparse ones may come back dense."""
        return gradients

    def barrier(self) -> None:
        """Returns when all ranks have called it."""

    @contextlib.contextmanager
    def first(self) -> Iterator[None]:
        """Inside, rank 0 goes first, and the others find the files that it has made."""
        if self.rank:
            self.barrier()
        yield
        if not self.rank:
            self.barrier()


_group: contextvars.ContextVar[Group] = contextvars.ContextVar("group", default=Group())


def current() -> Group:
    """The group of this thread's trainings."""
    return _group.get()


@contextlib.contextmanager
def joined(group: Group) -> Iterator[None]:
    """Inside, trainings of this thread are a rank of the group."""
    token = _group.set(group)
    try:
        yield
    finally:
        _group.reset(token)
