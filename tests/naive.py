"""The naive formula in a dtype: an op's NumPy reference with every operation rounded, and its gradient.

`evaluate` runs a reference on `Naive` arrays. Their values lie on the grid of the dtype (bfloat16 and float16
are stored as float32); each operation rounds its result once; sums add up in float32, as in a framework's
unfused ops. A tape gives the gradients of the same formula with the same rounding. In a wide dtype it is the
reference itself.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

_grid: np.dtype | None = None  # of the formula that is being computed
_sums_in_order = False
_steps = itertools.count()


class Node:
    """A step of the tape: `back` makes a gradient of its result into one for each parent."""

    def __init__(self, parents: list[Node | None], back: Callable | None):
        self.parents, self.back, self.step = parents, back, next(_steps)


def recorded(parents: list[Node | None], back: Callable) -> Node | None:
    return Node(parents, back) if any(parents) else None


class Naive(np.ndarray):
    """Values on the grid of the dtype in use."""

    node: Node | None = None

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if method == "at":
            target, index, added = inputs
            ufunc.at(plain(target), index, plain(added))
            plain(target)[...] = on_grid(plain(target))
            target.node = recorded([target.node, node_of(added)], lambda g: (g, g[index]))
            return None
        values = [plain(x).copy() if out and isinstance(x, Naive) else plain(x) for x in inputs]
        run = _matmul if ufunc is np.matmul else getattr(ufunc, method)
        if (_sums_in_order or _grid == np.float64) and method == "reduce" and ufunc is np.add:
            run = _sum
        y = on_grid(run(*values, **options))
        if isinstance(y, Naive):

            def back(g):
                rule = RULES[method, ufunc.__name__]
                axes = {} if method == "__call__" else options
                given = rule(g, on_grid(y), *(on_grid(v) for v in values), **axes)
                return [summed_to(d, np.shape(v)) for d, v in zip(given, values)]

            y.node = recorded([node_of(x) for x in inputs], back)
        if not out:
            return y
        plain(out[0])[...] = plain(y)
        if isinstance(out[0], Naive):
            out[0].node = node_of(y)
        return out[0]

    def __array_function__(self, function, types, args, options):
        function = _einsum if function is np.einsum else function
        rule = FUNCTION_RULES.get(function)
        if rule is None:  # made of methods and ufuncs, which round
            return super().__array_function__(function, types, args, options)
        several = function is np.concatenate
        parts = args[0] if several else args
        values = [plain(x) for x in parts]
        y = on_grid(function(values, *args[1:], **options) if several else function(*values, **options))
        if isinstance(y, Naive):
            rest = args[1:] if several else ()

            def back(g):
                given = rule(g, values, *rest, **options)
                return [d if d is None else summed_to(d, np.shape(v)) for d, v in zip(given, values)]

            y.node = recorded([node_of(x) for x in parts], back)
        return y

    def moved(self, y: np.ndarray, back: Callable) -> Naive:
        y = np.asarray(y).view(Naive)
        y.node = recorded([self.node], lambda g: (back(g),))
        return y

    def __getitem__(self, index):
        def back(g):
            whole = np.zeros(self.shape, g.dtype)
            np.add.at(whole, index, plain(g))
            return on_grid(whole)

        return self.moved(plain(self)[index], back)

    def __setitem__(self, index, value):
        def back(g):
            rest = plain(g).copy()
            rest[index] = 0
            return on_grid(rest), summed_to(g[index], np.shape(value))

        plain(self)[index] = on_grid(value)
        self.node = recorded([self.node, node_of(value)], back)

    def copy(self, order="C"):
        return self.moved(plain(self).copy(), lambda g: g)

    def astype(self, dtype, *args, **options):
        y = plain(self).astype(dtype, *args, **options)
        return self.moved(y, lambda g: g) if is_float(y) else y

    def reshape(self, *shape, **options):
        return self.moved(plain(self).reshape(*shape, **options), lambda g: g.reshape(self.shape))

    def transpose(self, *order):
        order = plain(np.arange(self.ndim)).tolist()[::-1] if not order else order
        order = list(order[0]) if len(order) == 1 and not isinstance(order[0], int) else order
        back = [int(i) for i in np.argsort([i % self.ndim for i in order])]
        return self.moved(plain(self).transpose(order), lambda g: g.transpose(back))

    def swapaxes(self, a, b):
        return self.moved(plain(self).swapaxes(a, b), lambda g: g.swapaxes(a, b))

    def take(self, indices, axis=None, out=None, mode="raise"):
        return self[(slice(None),) * (axis % self.ndim) + (indices,)]

    T = property(transpose)


def is_float(x: np.ndarray) -> bool:
    return x.dtype.kind == "f" or x.dtype == ml_dtypes.bfloat16


def plain(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, Naive) else x


def node_of(x: Any) -> Node | None:
    return x.node if isinstance(x, Naive) else None


def on_grid(x: Any) -> Any:
    """Floats rounded to the dtype in use; anything else, and all outside of `evaluate`, as it is."""
    x = np.asarray(x)
    if x.dtype == object:  # what a Python function gave
        x = x.astype(np.longdouble if _grid == np.longdouble else np.float64)
    if _grid is None or not is_float(x):
        return x
    return x.astype(_grid).astype(np.promote_types(_grid, np.float32), copy=False).view(Naive)


def _in_order(terms: Iterator[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """A sum of products one after the other: no BLAS, no processor decides how good the naive one is."""
    y = np.zeros(shape, _grid)
    for term in terms:
        y += term
    return y


def _sum(x: np.ndarray, axis: Any = 0, keepdims: bool = False, **_: Any) -> np.ndarray:
    if _grid not in (np.float32, np.float64):
        return np.add.reduce(x, axis, keepdims=keepdims)
    axes = tuple(range(x.ndim)) if axis is None else tuple(i % x.ndim for i in np.atleast_1d(axis))
    rows = np.moveaxis(x, axes, range(len(axes)))
    rows = rows.reshape(math.prod(rows.shape[: len(axes)]), *rows.shape[len(axes) :])
    y = np.add.accumulate(rows, dtype=_grid)[-1] if len(rows) else rows.sum(0)
    return np.expand_dims(y, axes) if keepdims else y


def _matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if _grid not in (np.float32, np.float64) or a.ndim == 1 or a.dtype.kind != "f" or b.dtype.kind != "f":
        return np.matmul(a, b)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    terms = (a[..., :, k : k + 1] * b[..., k : k + 1, :] for k in range(a.shape[-1]))
    return _in_order(terms, (*lead, a.shape[-2], b.shape[-1]))


def _einsum(signs: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Over one letter that both operands have and the result has not."""
    (left, right), result = signs.split("->")[0].split(","), signs.split("->")[1]
    (letter,) = set(left) - set(result)
    if _grid not in (np.float32, np.float64):
        return np.einsum(signs, a, b)
    a, b = np.moveaxis(a, left.index(letter), 0), np.moveaxis(b, right.index(letter), 0)
    rest = signs.replace(letter, "")
    sizes = dict(zip(left.replace(letter, ""), a.shape[1:])) | dict(
        zip(right.replace(letter, ""), b.shape[1:])
    )
    return _in_order((np.einsum(rest, x, y) for x, y in zip(a, b)), tuple(sizes[c] for c in result))


def summed_to(g: Naive, shape: tuple[int, ...]) -> Naive:
    """The gradient of what was broadcast from `shape`."""
    if g.shape == shape:
        return g
    g = g.sum(tuple(range(g.ndim - len(shape))))
    return g.sum(tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True).reshape(shape)


def _spread(g: Naive, x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    if axis is not None and not keepdims:
        g = np.expand_dims(plain(g), axis)
    return np.broadcast_to(plain(g), x.shape)


def _sum_rule(g, y, x, axis=0, keepdims=False, **_):
    return (on_grid(_spread(g, x, axis, keepdims)),)


def _extreme_rule(g, y, x, axis=0, keepdims=False, **_):
    equal = plain(x) == _spread(y, x, axis, keepdims)
    first = equal & (equal.cumsum(axis) == 1)
    return (on_grid(np.where(first, _spread(g, x, axis, keepdims), 0)),)


def _cumsum_rule(g, y, x, axis=0, **_):
    return (np.flip(np.flip(g, axis).cumsum(axis), axis),)


def _matmul_rule(g, y, a, b):
    if a.ndim == 1:
        return (b * g).sum(-1), a[:, None] * g
    return g @ b.swapaxes(-1, -2), a.swapaxes(-1, -2) @ g


def _power_rule(g, y, a, b):
    return np.where(b == 0, 0, g * b * a ** (b - 1)), g * y * np.log(a)


RULES: dict[tuple[str, str], Callable] = {
    ("reduce", "add"): _sum_rule,
    ("reduce", "maximum"): _extreme_rule,
    ("reduce", "minimum"): _extreme_rule,
    ("accumulate", "add"): _cumsum_rule,
} | {
    ("__call__", name): rule
    for name, rule in {
        "add": lambda g, y, a, b: (g, g),
        "subtract": lambda g, y, a, b: (g, -g),
        "multiply": lambda g, y, a, b: (g * b, g * a),
        "divide": lambda g, y, a, b: (g / b, -g * y / b),
        "power": _power_rule,
        "maximum": lambda g, y, a, b: (np.where(a >= b, g, 0), np.where(a < b, g, 0)),
        "minimum": lambda g, y, a, b: (np.where(a <= b, g, 0), np.where(a > b, g, 0)),
        "matmul": _matmul_rule,
        "negative": lambda g, y, a: (-g,),
        "absolute": lambda g, y, a: (g * np.sign(a),),
        "square": lambda g, y, a: (2 * g * a,),
        "exp": lambda g, y, a: (g * y,),
        "log": lambda g, y, a: (g / a,),
        "sqrt": lambda g, y, a: (g / (2 * y),),
        "tanh": lambda g, y, a: (g * (1 - y * y),),
        "exp2": lambda g, y, a: (g * y * math.log(2),),
        "_erf (vectorized)": lambda g, y, a: (g * (2 / math.sqrt(math.pi)) * np.exp(-a * a),),
        "_erfc (vectorized)": lambda g, y, a: (g * (-2 / math.sqrt(math.pi)) * np.exp(-a * a),),
    }.items()
}


def _einsum_rule(g, values):
    (left, right), result = values[0].split("->")[0].split(","), values[0].split("->")[1]
    _, a, b = values
    given_a = np.einsum(f"{result},{right}->{left}", g, on_grid(b))
    return None, given_a, np.einsum(f"{left},{result}->{right}", on_grid(a), g)


def _pad_rule(g, values, **_):
    return (g[tuple(slice(before, before + n) for (before, _), n in zip(values[1], values[0].shape))],)


FUNCTION_RULES: dict[Callable, Callable] = {
    np.where: lambda g, v: (None, np.where(v[0], g, 0), np.where(v[0], 0, g)),
    _einsum: _einsum_rule,
    np.broadcast_to: lambda g, v: (g,),
    np.pad: _pad_rule,
    np.concatenate: lambda g, v, axis=0: np.split(g, np.cumsum([x.shape[axis] for x in v])[:-1], axis),
}


def _slope(x: Any) -> Any:
    """2 / sqrt(pi) exp(-x^2), times what float64 leaves out of x."""
    rest = x - float(x) if math.isfinite(x) else 0.0
    return rest and 2 / math.sqrt(math.pi) * math.exp(-(float(x) ** 2)) * rest


def _erf(x: Any) -> Any:
    return math.erf(x) + _slope(x)


def _erfc(x: Any) -> Any:
    return math.erfc(x) - _slope(x)


def erf(x: Any) -> Any:
    return _given(_erf_of(x))


def erfc(x: Any) -> Any:
    return _given(_erfc_of(x))


def _given(y: Any) -> Any:
    return y if isinstance(y, Naive) else on_grid(y)


_erf_of, _erfc_of = np.frompyfunc(_erf, 1, 1), np.frompyfunc(_erfc, 1, 1)


@contextlib.contextmanager
def _rounding_to(dtype: str, sums_in_order: bool) -> Iterator[None]:
    global _grid, _sums_in_order
    before = _grid, _sums_in_order
    _grid, _sums_in_order = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype), sums_in_order
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _grid, _sums_in_order = before


def evaluate(
    formula: Callable[[dict[str, Any]], tuple],
    arrays: dict[str, np.ndarray],
    dtype: str,
    wanted: list[str] | None = None,
    weights: list[np.ndarray] | None = None,
    sums_in_order: bool = False,
) -> list[np.ndarray]:
    """The outputs of formula(arrays) in a dtype; with `wanted` the gradients of sum(weights * outputs).

    NumPy adds by halves; with sums_in_order, and in float64 (two lanes on an old processor), one value is
    added after the other, as in the textbook's loop.
    """
    with _rounding_to(dtype, sums_in_order):
        inputs = {name: on_grid(a) for name, a in arrays.items()}
        for name in wanted or ():
            inputs[name].node = Node([], None)
        outputs = [np.asanyarray(y) for y in formula(inputs)]
        if wanted is None:
            return [plain(y) for y in outputs]
        found: dict[Node, Naive] = {}
        for y, w in zip(outputs, weights):
            if node_of(y):
                _add(found, y.node, on_grid(np.broadcast_to(w, y.shape)))
        result = dict.fromkeys(inputs[name].node for name in wanted)
        while found:
            node = max(found, key=lambda n: n.step)
            g = found.pop(node)
            if node in result:
                result[node] = g
            for parent, given in zip(node.parents, node.back(g) if node.back else ()):
                if parent is not None:
                    _add(found, parent, given)
        leaves = [(inputs[name], result[inputs[name].node]) for name in wanted]
        return [np.zeros(x.shape) if g is None else plain(g) for x, g in leaves]


def _add(found: dict[Node, Naive], node: Node, g: Naive) -> None:
    found[node] = found[node] + g if node in found else g
