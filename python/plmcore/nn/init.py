"""Initialisers: functions (shape, dtype="float32") -> Tensor that draw from the generator of plm.seed.

A weight is [out, in]: fan_in is its last axis, fan_out the product of the others.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar

import numpy as np

from plmcore._core import ArgumentError, Tensor, ops

Init = Callable[..., Tensor]
_skipped = ContextVar("skipped", default=False)


@contextlib.contextmanager
def skipped() -> Iterator[None]:
    """Modules built in here have parameters with a shape but no memory (Parameter.new makes them so)."""
    token = _skipped.set(True)
    try:
        yield
    finally:
        _skipped.reset(token)


def is_skipped() -> bool:
    """Whether weights are left out, inside `skipped()`."""
    return _skipped.get()


def constant(value: float) -> Init:
    """Every value is `value`."""
    return lambda shape, dtype="float32": ops.full(shape, value, dtype)


def zeros(shape: Sequence[int], dtype: str = "float32") -> Tensor:
    """Every value is 0."""
    return ops.full(shape, 0.0, dtype)


def ones(shape: Sequence[int], dtype: str = "float32") -> Tensor:
    """Every value is 1."""
    return ops.full(shape, 1.0, dtype)


def uniform(low: float, high: float) -> Init:
    """Uniform between two bounds."""
    return lambda shape, dtype="float32": ops.uniform(shape, low, high, dtype)


def normal(std: float = 0.02, mean: float = 0.0) -> Init:
    """N(mean, std^2)."""
    return lambda shape, dtype="float32": ops.normal(shape, mean, std, dtype)


def truncated_normal(std: float = 0.02, mean: float = 0.0, cut: float = 2.0) -> Init:
    """Normal, redrawn where it falls beyond `cut` standard deviations;
    `std` is that before the cut, as in BERT.
    """

    def draw(shape: Sequence[int], dtype: str = "float32") -> Tensor:
        values = np.array(ops.normal(shape, 0.0, 1.0, "float32").numpy())
        while (beyond := np.abs(values) > cut).any():
            values[beyond] = ops.normal((int(beyond.sum()),), 0.0, 1.0, "float32").numpy()
        return Tensor(values * np.float32(std) + np.float32(mean), dtype=dtype)

    return draw


def rows(*draws: Init) -> Init:
    """Equal parts of the rows, each drawn in its own way: weights that are used in one product."""

    def draw(shape: Sequence[int], dtype: str = "float32") -> Tensor:
        if shape[0] % len(draws):
            raise ArgumentError(f"init.rows: {shape[0]} rows cannot be split into {len(draws)} equal parts")
        return ops.concat([d((shape[0] // len(draws), *shape[1:]), dtype) for d in draws], 0)

    return draw


def zero_row(draw: Init, row: int) -> Init:
    """As `draw`, but one row is zeros: that of a padding token."""

    def draw_all(shape: Sequence[int], dtype: str = "float32") -> Tensor:
        values = draw(shape, dtype)
        values.numpy()[row] = 0
        return values

    return draw_all


def xavier_uniform(gain: float = 1.0) -> Init:
    """Glorot: variance 2 / (fan_in + fan_out)."""
    return lambda shape, dtype="float32": _within(gain * math.sqrt(6 / sum(_fans(shape))), shape, dtype)


def xavier_normal(gain: float = 1.0) -> Init:
    """N(0, gain^2 * 2 / (fan_in + fan_out))."""
    return lambda shape, dtype="float32": ops.normal(
        shape, 0.0, gain * math.sqrt(2 / sum(_fans(shape))), dtype
    )


def kaiming_uniform(gain: float = math.sqrt(2)) -> Init:
    """He: variance gain^2 / fan_in; the default gain is that of relu. gain 1/sqrt(3) is torch's default for
    linear layers.
    """
    return lambda shape, dtype="float32": _within(gain * math.sqrt(3 / _fans(shape)[0]), shape, dtype)


def kaiming_normal(gain: float = math.sqrt(2)) -> Init:
    """N(0, gain^2 / fan_in); the default gain is for layers before a ReLU."""
    return lambda shape, dtype="float32": ops.normal(shape, 0.0, gain / math.sqrt(_fans(shape)[0]), dtype)


def _within(bound: float, shape: Sequence[int], dtype: str) -> Tensor:
    return ops.uniform(shape, -bound, bound, dtype)


def _fans(shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) < 2:
        raise ArgumentError(f"this initialiser needs a weight with at least two axes, got {list(shape)}")
    return max(1, shape[-1]), max(1, math.prod(shape[:-1]))
