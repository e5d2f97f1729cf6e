"""What Transformer-XL brought and XLNet kept: distances between tokens as sinusoids, and the memory of
earlier segments.

Shapes: B batch, T length, P memory, S = P + T keys, L distances, C width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from plmcore._core import Dim, ShapeError, Tensor, ops
from plmcore.nn.state import State, chosen

STEP = 256
LIMIT = STEP * STEP // 2  # positions are from -LIMIT to LIMIT - 1


@dataclass(frozen=True)
class Memories(State):
    """What a model remembers of earlier segments, of each layer.  [P, B n, C], n sequences of B prompts"""

    layers: tuple[Tensor, ...]
    each: int | Dim = 1  # n

    @property
    def batch(self) -> int | Dim:
        rows: Any = self.layers[0].shape[1]
        return rows // self.each

    def tensors(self) -> dict[str, Tensor]:
        return {str(i): m for i, m in enumerate(self.layers)}

    def rebuilt(self, tensors: Mapping[str, Tensor]) -> Memories:
        return Memories(tuple(tensors[str(i)] for i in range(len(tensors))), self.each)

    def select(self, live: Tensor | None, parents: Tensor | None) -> Memories:
        B, n = self.batch, self.each
        numbers = ops.reshape(ops.arange(0, B * n, like=self.layers[0]), (B, n))
        rows = chosen(numbers, live, parents)
        every = ops.reshape(rows, (rows.shape[0] * rows.shape[1],))
        return Memories(tuple(ops.index_select(m, every, 1) for m in self.layers), rows.shape[1])


def by_distance(q: Tensor, v: Tensor, r: Tensor, S: int | Dim) -> Tensor:
    """What attention adds to the score of a query and a key for the distance between them.
    q [B, T, H, D], v [H, D], r [B|1, H, L, D] of distances as `distances` gives them -> [B, H, T, S]
    """
    H, D = v.shape
    by_head = ops.add(ops.transpose(q, (0, 2, 1, 3)), ops.reshape(v, (H, 1, D)))  # [B, H, T, D]
    return ops.rel_shift(ops.matmul(by_head, r, transpose_b=True), S)


def distances(T: int | Dim, S: int | Dim, ahead: bool, most: int, like: Tensor) -> Tensor:
    """From S - 1 down to 0, or to 1 - T for those who look ahead, as ops.rel_shift wants them; `most`: none
    is larger, either way.  int64 [L]
    """
    d = ops.slice(ops.arange(0, S, like=like), 0, 0, S, -1)
    if ahead:
        d = ops.concat([d, -ops.arange(1, T, like=like)])
    if most <= 0:
        return d
    low, high = (ops.full((), n, "int64", like=like) for n in (-most, most))
    return ops.minimum(ops.maximum(d, low), high)


def sinusoids(positions: Tensor, width: int, dtype: str) -> Tensor:
    """sin(p f), then cos(p f), with frequencies f = 10000^(-2 i / width), i < width / 2.
    int64 [...] -> [..., width]

    A length has no number while a program is traced, so that there is no table of all positions:
    p = 256 a + b, and the sum formulas join two small tables.
    The angles are exact, where a product p f in float32 is off by up to p / 2^24.
    """
    high, low = _tables(width, "float64" if dtype == "float64" else "float32", positions.device)
    p = positions + LIMIT
    a = ops.cast(ops.affine(ops.cast(p, "float32"), 1 / STEP, 0.0), "int64")  # cut to a whole number
    b = ops.sub(p, a * STEP)
    halves = (width // 2, width // 2)
    sin_a, cos_a = ops.split(ops.embedding(high, a), halves, -1)  # [..., width / 2]
    sin_b, cos_b = ops.split(ops.embedding(low, b), halves, -1)
    sin = ops.add(ops.mul(sin_a, cos_b), ops.mul(cos_a, sin_b))
    cos = ops.sub(ops.mul(cos_a, cos_b), ops.mul(sin_a, sin_b))
    return ops.cast(ops.concat([sin, cos], -1), dtype)


def next_memory(
    memory: Tensor | None, h: Tensor, mem_len: int | None, reuse_len: int | None = None
) -> Tensor:
    """Of the memory and the first reuse_len positions of h the last mem_len; None or 0: all.
    [B, P, C], [B, T, C] -> [.., B, C]
    """
    both = h if memory is None else ops.concat([memory, h], 1)
    both = ops.transpose(both, (1, 0, 2)).detach()  # [S, B, C]
    if not mem_len and not reuse_len:
        return both
    S, P = both.shape[0], 0 if memory is None else memory.shape[1]
    n, end = ops.arange(0, S, like=h), count(S, h)
    if reuse_len:
        end = ops.minimum(end, count(P, h) + reuse_len)
    stays = ops.less(n, end)
    if mem_len:
        stays = ops.logical_and(stays, ops.greater_equal(n + mem_len, end))
    return ops.pack_rows(ops.reshape(both, (1, *both.shape)), ops.reshape(stays, (1, S)))[0]


def by_batch(
    mems: Sequence[Tensor] | Tensor | None, layers: int, B: int | Dim, T: int | Dim, width: int
) -> list[Tensor | None]:
    """Memories as models take and give them, [P, B, C] of each layer (or all in one tensor), as [B, P, C];
    None and () are none.
    """
    found = [] if mems is None else [mems[i] for i in range(len(mems))]
    if not found:
        return [None] * layers
    if len(found) != layers:
        raise ShapeError(f"mems must have one tensor for each of the {layers} layers, got {len(found)}")
    P = found[0].shape[0]
    for i, memory in enumerate(found):
        check_shape(f"mems[{i}]", memory, (P, B, width), "[length, batch, width]")
    if isinstance(P + T, int) and P + T > LIMIT:
        raise ShapeError(f"mems and input_ids: {P} and {T} positions are more than {LIMIT}; cut the memory")
    return [ops.transpose(memory, (1, 0, 2)) for memory in found]


def check_shape(name: str, tensor: Tensor, shape: Sequence[int | Dim | str], meaning: str) -> None:
    """Sizes that have no number yet are checked when they have."""
    differ = [isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(shape, tensor.shape)]
    if tensor.ndim != len(shape) or any(differ):
        raise ShapeError(f"{name} must be {list(shape)}, {meaning}; got {list(tensor.shape)}")


def count(n: int | Dim, like: Tensor) -> Tensor:
    """A size, which may have no number yet, as a tensor."""
    if isinstance(n, int):
        return ops.full((), n, "int64", like=like)
    return ops.sum(ops.full((n,), 1, "int64", like=like))


@lru_cache(maxsize=8)
def _tables(width: int, dtype: str, device: str) -> tuple[Tensor, Tensor]:
    """Of 256 a - LIMIT and of b, for a, b < 256.  [256, width] each"""
    frequencies = 10000.0 ** (-np.arange(0, width, 2) / width)

    def table(positions: np.ndarray) -> Tensor:
        angles = positions[:, None] * frequencies
        return Tensor(np.concatenate([np.sin(angles), np.cos(angles)], -1), dtype=dtype, device=device)

    return table(STEP * np.arange(STEP) - LIMIT), table(np.arange(STEP))
