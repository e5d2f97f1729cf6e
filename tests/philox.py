"""Philox 4x32-10 in NumPy, and which of its words a random op takes for an element."""

import numpy as np
from naive import on_grid


def philox(seed: int, block) -> np.ndarray:
    """The four words of each block: counter (block, 0), key = seed."""
    block, low, half = np.asarray(block, np.uint64), np.uint64(0xFFFFFFFF), np.uint64(32)
    c0, c1, c2, c3 = block & low, block >> half, np.zeros_like(block), np.zeros_like(block)
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (
            (p1 >> half) ^ c1 ^ np.uint64(k0),
            p1 & low,
            (p0 >> half) ^ c3 ^ np.uint64(k1),
            p0 & low,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], -1).astype(np.uint32)


def words(seed: int, offset: int, n: int) -> np.ndarray:
    i = np.arange(n)
    return philox(seed, offset + i // 64 * 16 + i % 16)[i, i // 16 % 4]


def halves(seed: int, offset: int, n: int) -> np.ndarray:
    i = np.arange(n)
    return (
        philox(seed, offset + i // 128 * 16 + i % 16)[i, i // 16 % 4] >> (i // 64 % 2 * 16).astype(np.uint32)
        & 0xFFFF
    )


def uniform(seed: int, offset: int, n: int) -> np.ndarray:
    return on_grid((words(seed, offset, n) >> 8) * 2.0**-24)


def normal(seed: int, offset: int, n: int) -> np.ndarray:
    u = uniform(seed, offset, -(-n // 64) * 64).reshape(-1, 4, 16)
    radius, angle = np.sqrt(-2 * np.log(u[:, 0::2] + 2.0**-24)), 2 * np.pi * u[:, 1::2]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 2).reshape(-1)[:n]
