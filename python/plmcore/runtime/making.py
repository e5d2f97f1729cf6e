"""Tensors from nothing but a shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore._core import ArgumentError, Dim, Tensor, ops
from plmcore.runtime.kinds import checked

Size = int | Dim


@checked
def full(
    shape: Size | Sequence[Size],
    value: float,
    dtype: str = "float32",
    device: str | None = None,
    requires_grad: bool = False,
    like: Tensor | None = None,
) -> Tensor:
    """A tensor of one value, on a device by its name or on that of the tensor `like`."""
    t = ops.full(shape, value, dtype, device, like)
    return t.requires_grad_() if requires_grad else t


@checked
def zeros(
    *shape: Size | Sequence[Size],
    dtype: str = "float32",
    device: str | None = None,
    requires_grad: bool = False,
    like: Tensor | None = None,
) -> Tensor:
    """zeros(2, 3) or zeros((2, 3))."""
    return full(_sizes(shape), 0.0, dtype, device, requires_grad, like)


@checked
def ones(
    *shape: Size | Sequence[Size],
    dtype: str = "float32",
    device: str | None = None,
    requires_grad: bool = False,
    like: Tensor | None = None,
) -> Tensor:
    """ones(2, 3) or ones((2, 3))."""
    return full(_sizes(shape), 1.0, dtype, device, requires_grad, like)


@checked
def arange(
    start: float | Dim,
    stop: float | Dim | None = None,
    step: float = 1,
    dtype: str | None = None,
    device: str | None = None,
    like: Tensor | None = None,
) -> Tensor:
    """Like numpy.arange; integers become int64, floats float32. Symbolic sizes count up in steps of 1."""
    if stop is None:
        start, stop = 0, start
    if isinstance(start, Dim) or isinstance(stop, Dim):
        if step != 1:
            raise ArgumentError(f"arange: the step must be 1 with symbolic sizes, got {step}")
        whole = [n if isinstance(n, Dim) else int(n) for n in (start, stop)]
        return ops.arange(whole[0], whole[1], dtype or "int64", device, like)
    if step == 0 or not (stop - start) / step < 1 << 46:  # as many as a tensor may have; nan is none of them
        raise ArgumentError(
            f"arange: there are no numbers, or too many, from {start} to {stop} in steps of {step}"
        )
    if device is not None and like is not None:
        raise ArgumentError("a new tensor has its place by device= or by like=, not by both")
    values = np.arange(start, stop, step)
    device = device if like is None else like.device
    return Tensor(values, dtype=dtype or ("int64" if values.dtype.kind == "i" else "float32"), device=device)


@checked
def rand(
    *shape: Size | Sequence[Size],
    dtype: str = "float32",
    device: str | None = None,
    requires_grad: bool = False,
    like: Tensor | None = None,
) -> Tensor:
    """Uniform on [0, 1)."""
    t = ops.uniform(_sizes(shape), 0.0, 1.0, dtype, device, like)
    return t.requires_grad_() if requires_grad else t


@checked
def randn(
    *shape: Size | Sequence[Size],
    dtype: str = "float32",
    device: str | None = None,
    requires_grad: bool = False,
    like: Tensor | None = None,
) -> Tensor:
    """Standard normal."""
    t = ops.normal(_sizes(shape), 0.0, 1.0, dtype, device, like)
    return t.requires_grad_() if requires_grad else t


def _sizes(shape: tuple[Any, ...]) -> Sequence[Size]:
    return shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape


def rebuild(cls: type[Tensor], array: np.ndarray, device: str, requires_grad: bool) -> Tensor:
    """The copy that pickle and copy.deepcopy make: the same class with the same values."""
    t = cls.__new__(cls)
    Tensor.__init__(t, array, device=device, requires_grad=requires_grad)
    return t
