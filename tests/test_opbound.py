"""The bound of the op tests lets through what the naive formula does, and not much more."""

import naive
import numpy as np
import opbound
import pytest

RNG = np.random.default_rng(0)


def softmax(x):
    e = np.exp(x - np.asarray(x).max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def expected(formula, dtype="float32", **arrays):
    def compute(inputs, grid):
        return naive.evaluate(lambda x: (formula(**x),), inputs, grid)

    return opbound.expect(compute, opbound.rounded(arrays, dtype), dtype)[0]


def passes(actual, of, factor=opbound.VALUES):
    try:
        opbound.assert_close(actual, of, factor, "it")
    except AssertionError:
        return False
    return True


def test_small_values_of_a_long_softmax_are_held_to_small_errors():
    of = expected(softmax, x=RNG.standard_normal((3, 5003)))
    y = of.exact.astype(np.float32)
    assert passes(y, of)
    median = np.argsort(y[0])[5003 // 2]
    y[0, median] *= 1 + 2**-16  # max(1, |value|) let it be off by 8 %
    assert not passes(y, of)


def test_the_naive_formula_passes_in_every_dtype():
    for dtype in ("float64", "float32", "bfloat16", "float16"):
        of = expected(softmax, dtype, x=RNG.standard_normal((5, 769)))
        inputs = opbound.rounded({"x": RNG.standard_normal((5, 769))}, dtype)
        other = naive.evaluate(lambda x: (softmax(**x),), inputs, dtype)[0]
        assert not passes(other.astype(opbound.numpy_dtype(dtype)), of)
        assert passes(of.exact.astype(opbound.numpy_dtype(dtype)), of)
        assert of.errors.any()


def test_where_the_formula_is_exact_so_is_the_kernel():
    of = expected(lambda x: x.transpose(1, 0), x=RNG.standard_normal((3, 4)))
    y = of.exact.astype(np.float32)
    assert passes(y, of)
    y[1, 1] = np.nextafter(y[1, 1], np.float32(9))
    assert not passes(y, of)


def test_infinities_and_nan_must_be_the_same():
    def inverse(x):
        return 1 / x

    of = expected(inverse, x=np.array([0.0, np.nan, 3.0]))
    assert passes(np.array([np.inf, np.nan, 1 / 3], np.float32), of)
    for wrong in (
        [np.inf, 0, 1 / 3],
        [1e38, np.nan, 1 / 3],
        [np.nan, np.nan, 1 / 3],
        [np.inf, np.nan, np.inf],
    ):
        assert not passes(np.array(wrong, np.float32), of)


def test_whole_numbers_must_be_equal():
    of = expected(lambda x: np.argmax(x, -1), x=RNG.standard_normal((3, 4)))
    assert passes(of.exact, of) and not passes(of.exact + 1, of) and not passes(of.exact.astype(bool), of)


def test_units_in_the_last_place():
    assert opbound.unit(np.array([1.0, 1.9, 2.0, 0.0]), "float32").tolist() == [
        2**-23,
        2**-23,
        2**-22,
        2**-149,
    ]
    assert opbound.unit(np.array(1.0), "bfloat16") == 2**-7


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_every_operation_rounds(dtype):
    x, y = (RNG.standard_normal(1000).astype(opbound.numpy_dtype(dtype)) for _ in range(2))
    (found,) = naive.evaluate(lambda a: (a["x"] * a["y"] + a["y"],), {"x": x, "y": y}, dtype)
    assert np.array_equal(found.astype(x.dtype), x * y + y)


@pytest.mark.parametrize(
    "formula",
    [
        lambda x: x @ x.T,
        lambda x: np.einsum("ij,kj->ik", x, x),
        lambda x: np.exp2(x) ** 3 / (1 + x**2),
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1),
        lambda x: np.where(x > 0, x, 2 * x).cumsum(1),
        lambda x: np.concatenate([x, x[:, :2] * 3], axis=1).max(1),
        lambda x: naive.erf(x) + naive.erfc(2 * x) + np.tanh(x) + abs(x),
        lambda x: (
            np.pad(x, [(1, 0), (0, 2)]).reshape(-1)[3:9] + np.take(x, np.array([1, 1, 0, 2, 2, 0]), 1)[0]
        ),
    ],
)
def test_gradients_of_the_formula(formula):
    x, step = RNG.standard_normal((4, 3)), 1e-6

    def weighted(x):
        (y,) = naive.evaluate(lambda a: (formula(a["x"]),), {"x": x}, "float64")
        return (y * weights).sum(), y.shape

    weights = 1.0
    weights = RNG.standard_normal(weighted(x)[1])
    (g,) = naive.evaluate(lambda a: (formula(a["x"]),), {"x": x}, "float64", ["x"], [weights])
    for spot in np.ndindex(x.shape):
        move = np.zeros_like(x)
        move[spot] = step
        slope = (weighted(x + move)[0] - weighted(x - move)[0]) / (2 * step)
        assert g[spot] == pytest.approx(slope, rel=1e-6, abs=1e-8)
