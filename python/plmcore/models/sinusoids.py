"""Positions as sinusoids (Vaswani et al. 2017), in the layouts of three implementations.  C width"""

from __future__ import annotations

import numpy as np

from plmcore import nn
from plmcore._core import Tensor, ops
from plmcore.models import padding
from plmcore.models.cache import Step


def vaswani(rows: int, width: int) -> np.ndarray:
    """sin and cos of p / 10000^(2i / C) in turn; row p is position p.  [rows, C]"""
    angles = np.arange(rows)[:, None] / np.power(10000, 2 * np.arange((width + 1) // 2) / width)
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(rows, -1)[:, :width]


def marian(rows: int, width: int) -> np.ndarray:
    """The same numbers, all sines before the cosines."""
    table = vaswani(rows, width)
    return np.concatenate([table[:, 0::2], table[:, 1::2]], 1)


def fairseq(rows: int, width: int) -> np.ndarray:
    """All sines before the cosines, of p / 10000^(i / (C/2 - 1))."""
    half = width // 2
    angles = np.arange(rows)[:, None] * np.power(10000, -np.arange(half) / max(1, half - 1))
    return np.concatenate([np.sin(angles), np.cos(angles), np.zeros((rows, width % 2))], 1)


class Sinusoids(nn.Module):
    """Row p of the table for position p; padding counts.  ids [B, T] -> [1, T, C], or rows"""

    def __init__(self, length: int, width: int, kind: str, pad: int):
        table = {"vaswani": vaswani, "marian": marian}[kind]
        self.weight = nn.Buffer.new(
            lambda s, dtype="float32": Tensor(table(*s).astype(dtype)), (length, width)
        )

    def __call__(self, ids: Tensor, layout: padding.Layout) -> Tensor:
        return ops.embedding(self.weight, layout.positions())


class CountedSinusoids(nn.Module):
    """fairseq's: only tokens that are no padding count, the first is at row pad + 1; padding gets zeros.  ids
    [B, T] -> rows
    """

    def __init__(self, length: int, width: int, kind: str, pad: int):
        draw = nn.init.zero_row(lambda s, dtype="float32": Tensor(fairseq(*s).astype(dtype)), pad)
        self.weight, self.pad = nn.Buffer.new(draw, (pad + 1 + length, width)), pad

    def __call__(self, ids: Tensor, layout: padding.Layout) -> Tensor:
        if isinstance(layout, Step):  # what is made is no padding
            return ops.embedding(self.weight, layout.positions() + (self.pad + 1))
        real = ops.cast(ids != self.pad, "int64")
        return ops.embedding(self.weight, layout.pack(ops.mul(ops.cumsum(real, 1), real) + self.pad))


SINUSOIDS = {"vaswani": Sinusoids, "marian": Sinusoids, "fairseq": CountedSinusoids}
