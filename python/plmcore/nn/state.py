"""What a model carries from one call to the next: keys and values of the tokens it has seen, memories of
earlier segments, the (h, c) of a recurrent network.

A State is a value: its methods return another one. Decoding selects the sequences that go on,
training detaches it between batches, checkpoints and exported programs hold its tensors by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Self

from plmcore._core import ArgumentError, Dim, ShapeError, Tensor, ops


class State(ABC):
    """A subclass gives tensors, rebuilt, select and batch."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """All that it holds, by names that checkpoints and exports keep."""

    @abstractmethod
    def rebuilt(self, tensors: Mapping[str, Tensor]) -> Self:
        """The same with these tensors, which have the names of tensors()."""

    @abstractmethod
    def select(self, live: Tensor | None, parents: Tensor | None) -> Self:
        """For a search: prompt i from now on is live[i] of before, its sequence j continues the one numbered
        parents[i, j] there.  int64 [L], int64 [L, n]; None: all prompts, each with its own sequences
        """

    @property
    @abstractmethod
    def batch(self) -> int | Dim:
        """How many rows of a batch it belongs to: in training sequences, in a search prompts."""

    def reserve(self, n: int, runs: int | None = None) -> Self:
        """With room for n more tokens of each prompt; runs: how often at most, this time included, n more
        will be asked for. For states that grow.
        """
        return self

    def grown(self, n: int | Dim) -> Self:
        """With n more free places for tokens, whatever there is. For states that grow."""
        return self

    def signature(self) -> dict[str, tuple[int | str | Dim, ...]]:
        """The sizes of its tensors between two steps of a program: numbers, B for the batch, and names."""
        batch = str(self.batch)

        def word(name: str, axis: int, size: int | Dim) -> int | str:
            if isinstance(size, int):
                return size
            return "B" if str(size) == batch else f"{name}.{axis}".replace(".", "_")

        return {
            name: tuple(word(name, axis, size) for axis, size in enumerate(t.shape))
            for name, t in self.tensors().items()
        }

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> Self:
        """The same with these tensors: of a checkpoint, or of a program's outputs."""
        if tensors.keys() != self.tensors().keys():
            raise ArgumentError(
                f"{type(self).__name__}: the tensors must be {', '.join(self.tensors())}, got "
                f"{', '.join(tensors) or 'none'}"
            )
        return self.rebuilt(tensors)

    def detach(self) -> Self:
        """The same values, from which no gradient flows back."""
        return self.rebuilt({name: t.detach() for name, t in self.tensors().items()})

    @property
    def nbytes(self) -> int:
        """The bytes of all its tensors."""
        return sum(t.nbytes for t in self.tensors().values())

    def check_batch(self, B: int | Dim) -> None:
        """It must be of B rows."""
        if isinstance(B, int) and isinstance(self.batch, int) and self.batch != B:
            raise ShapeError(
                f"{type(self).__name__}: the state is of {self.batch} sequences, the batch has {B}: select() "
                f"those that go on, or begin without a state"
            )


def chosen(x: Tensor, live: Tensor | None, parents: Tensor | None) -> Tensor:
    """State.select for a tensor with a row for each sequence.  [B, m, ...] -> [L, n, ...]"""
    x = x if live is None else ops.index_select(x, live)
    return x if parents is None else ops.gather_beams(x, parents)
