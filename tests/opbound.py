"""How far a kernel may be from the exact value (docs/adr/0022).

    error <= 2 x (gradients 3 x) the error of the naive formula in the same dtype + 2 units in the last place

The naive error of a value is the largest that the naive formula (naive.py) makes on values no larger than
it, 1,024 of them at least: small values of a tensor are held to small errors, and one lucky rounding sets no
bound. Where a case has few values, the formula runs on nearby inputs too. Where the naive formula is exact,
so is the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np
from naive import is_float

VALUES, GRADIENTS = 2.0, 3.0  # times the error of the naive formula
ULPS = 2.0
POOL = 1024  # values that speak for the error of one of them
DRAWS = 16  # runs of the naive formula, at most
NEAR = 0.01  # how far from the inputs, relative

Compute = Callable[[dict[str, np.ndarray], str], list[np.ndarray]]


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def rounded(arrays: dict[str, np.ndarray], dtype: str) -> dict[str, np.ndarray]:
    """The arrays with floats in `dtype`."""
    return {
        n: np.ascontiguousarray(a.astype(numpy_dtype(dtype))).reshape(a.shape) if is_float(a) else a
        for n, a in arrays.items()
    }


@dataclass
class Expected:
    """The exact values of one tensor; errors of the naive formula in a dtype, and the sizes of its values."""

    exact: np.ndarray
    dtype: str
    sizes: np.ndarray
    errors: np.ndarray
    exact_formula: bool  # the naive one makes no error at all

    def allowed(self, factor: float, ulps: float) -> np.ndarray:
        exact = np.nan_to_num(np.abs(self.exact.astype(np.float64)))
        if self.exact_formula:
            return np.zeros(exact.shape)
        order = np.argsort(self.sizes)
        largest = np.maximum.accumulate(self.errors[order])
        place = np.searchsorted(self.sizes[order], exact, "right") - 1
        naive = 0.0 if not largest.size else largest[np.clip(place, min(POOL, largest.size) - 1, None)]
        return factor * naive + ulps * unit(exact, self.dtype)


def unit(size: np.ndarray, dtype: str) -> np.ndarray:
    """The unit in the last place of each value."""
    info = ml_dtypes.finfo(numpy_dtype(dtype))
    exponent = np.floor(np.log2(np.clip(size, float(info.smallest_normal), float(info.max))))
    return float(info.eps) * 2.0**exponent


def expect(
    compute: Compute, arrays: dict[str, np.ndarray], dtype: str, by_size: bool = True
) -> list[Expected]:
    """What compute(arrays, grid) should give in a dtype. Without by_size a tensor has one bound."""
    wide = "longdouble" if dtype == "float64" else "float64"
    exact = compute(arrays, wide)
    few = min((y.size for y in exact if y.size), default=POOL)
    rng = np.random.default_rng(0)
    sizes, errors, clean = [[] for _ in exact], [[] for _ in exact], [True for _ in exact]
    for k in range(int(np.clip(-(-POOL // few), 1, DRAWS))):
        near = arrays if k == 0 else rounded({n: nearby(a, rng) for n, a in arrays.items()}, dtype)
        for i, (r, y) in enumerate(zip(exact if k == 0 else compute(near, wide), compute(near, dtype))):
            if not is_float(r):
                continue
            with np.errstate(invalid="ignore"):
                error = np.abs(y.reshape(-1) - r.reshape(-1)).astype(np.float64)
            known = np.isfinite(error)
            clean[i] &= not error[known].any() and not np.isfinite(r.reshape(-1)[~known]).any()
            # A zero that is exact tells nothing of its neighbours.
            known &= (error > 0) | (r.reshape(-1) != 0)
            sizes[i].append(np.abs(r.reshape(-1)[known]).astype(np.float64) * by_size)
            errors[i].append(error[known])
    gathered = [np.concatenate(x) if x else np.zeros(0) for x in (*sizes, *errors)]
    parts = zip(exact, gathered[: len(exact)], gathered[len(exact) :], clean)
    return [Expected(r, dtype, s, e, c) for r, s, e, c in parts]


def nearby(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return a * (1 + NEAR * rng.uniform(-1, 1, a.shape)) if is_float(a) else a


def assert_close(
    actual: np.ndarray, expected: Expected, factor: float, what: str, ulps: float = ULPS, off: float = 0.0
) -> None:
    """The rule, with `off` more as an absolute error."""
    exact = expected.exact
    assert actual.shape == exact.shape, f"{what}: shape {actual.shape}, expected {exact.shape}"
    if not is_float(actual):
        kind = actual.dtype.kind
        assert kind == exact.dtype.kind or {kind, exact.dtype.kind} == {"i", "u"}, (
            f"{what}: {actual.dtype}, expected {exact.dtype}"
        )
        assert np.array_equal(actual, exact), f"{what}: {actual} is not {exact}"
        return
    if not actual.size:
        return
    a, r = actual.astype(exact.dtype), exact
    with np.errstate(invalid="ignore", over="ignore"):
        r = np.where(np.isinf(r.astype(actual.dtype)), np.copysign(np.inf, r), r)  # too large for the dtype
        same = (a == r) | (np.isnan(a) & np.isnan(r))
        error = np.where(same, 0.0, np.abs(a - r))
        error = np.where(np.isnan(error), np.inf, error)
        allowed = expected.allowed(factor, ulps) + off
        excess = error - allowed
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    assert excess[worst] <= 0, (
        f"{what}: {a[worst]} at {tuple(int(i) for i in worst)}, expected {r[worst]}; error "
        f"{error[worst]:.3g}, {allowed[worst]:.3g} allowed"
    )
