import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from naive import erf
from optest import OpSpec
from plmcore import Tensor, _core, ops

RNG = np.random.default_rng(5)


def int8(*shape):
    return RNG.integers(-127, 128, shape, dtype=np.int8)


def quantized(x, weight, scale=None, bias=None, activation="none", bits=13):
    """A weight of floats as bfloat16."""
    weight = weight if weight.dtype == "int8" else ops.cast(weight, "bfloat16")
    return ops.linear_quantized(x, weight, scale, bias, activation, bits)


def activated(z, activation):
    gelu = z * (0.5 + 0.5 * erf(z / 2**0.5))
    return {"none": z, "relu": np.maximum(z, 0), "tanh": np.tanh(z), "gelu": gelu}[activation]


def rounded(x, bits=13):
    """Rows of x as whole numbers, and what one of them is worth."""
    most = np.float32(min(2 ** (bits - 1) - 1, (2**31 - 1) // (128 * max(x.shape[-1], 1))))
    x = x.astype(np.float32)
    largest = np.abs(x).max(-1, keepdims=True, initial=0)
    with np.errstate(divide="ignore"):
        inverse = np.where(largest > 0, most / largest, np.float32(0)).astype(np.float32)
    return np.rint(x * inverse).astype(np.int64), largest / most


def reference(x, weight, scale=None, bias=None, activation="none", bits=13):
    if scale is None:
        z = x.astype(np.float64) @ weight.astype(ml_dtypes.bfloat16).astype(np.float64).T
    else:
        q, unit = rounded(x, bits)
        z = (q @ weight.astype(np.int64).T).astype(np.float64) * unit * scale
    return activated(z + (0 if bias is None else bias), activation)


def cases(M, N, K, **more):
    """Both kinds of weight, int8 with both kinds of activations."""
    x = RNG.standard_normal((*M, K)).astype(np.float32)
    weight, scale = int8(N, K), RNG.random(N).astype(np.float32) / 64
    return [
        dict(x=x, weight=weight, scale=scale, **more),
        dict(x=x, weight=weight, scale=scale, bits=8, **more),
        dict(x=x, weight=(N, K), **more),
    ]


spec = OpSpec(
    op=quantized,
    ref=reference,
    cases=[
        *cases((2, 3), 4, 5, bias=(4,), activation="relu"),
        *cases((4, 7), 4, 5, bias=(4,), activation="relu"),
        *cases((1,), 101, 37, bias=(101,)),
        *cases((3,), 50, 129),
        *cases((5,), 67, 64),
        *cases((8,), 1000, 771, bias=(1000,), activation="tanh"),
        *cases((530,), 401, 1025, bias=(401,), activation="relu"),
        *cases((0,), 4, 5),
        *cases((3,), 4, 0),
    ],
    covers=["linear_quantized"],
    dims={"x": "B T 5"},
    grad=(),
    dtypes=("float32",),
    errors=[
        (
            dict(x=(2, 6), weight=int8(4, 5), scale=(4,)),
            r"the last axis of x must be 5 \(weight is \[4, 5\]\), got \[2, 6\]",
        ),
        (dict(x=(2, 5), weight=int8(4, 5)), r"an int8 weight needs a scale, .* int8\[4, 5\] without a scale"),
        (dict(x=(2, 5), weight=(4, 5), scale=(4,)), r"a bfloat16 weight has none; .* with a scale"),
        (dict(x=(2, 5), weight=int8(4, 5), scale=(5,)), r"scale must be \[4\], got \[5\]"),
        (dict(x=(2, 5), weight=int8(4, 5), scale=(4,), bits=9), r"bits must be 8 or 13, got 9"),
        (dict(x=(2, 5), weight=int8(5), scale=(5,)), r"weight must be \[N, K\], got int8\[5\]"),
        (
            dict(x=np.ones((2, 5), int), weight=int8(4, 5), scale=(4,)),
            r"x must be float32, got int64\[2, 5\]",
            TypeError,
        ),
    ],
    bench=dict(x=(128, 768), weight=int8(768, 768), scale=(768,), bits=8),
)
test_all = spec.tests()

gelu = OpSpec(
    op=quantized,
    ref=reference,
    cases=[*cases((9,), 16, 16, activation="gelu"), *cases((97,), 63, 65, activation="gelu")],
    covers=["linear_quantized"],
    grad=(),
    dtypes=("float32",),
    trace=False,
    off=3e-6,  # a polynomial: far less than rounding has left of x
)
test_gelu = gelu.tests()


def test_other_weights_are_refused():
    with pytest.raises(TypeError, match=r"weight must be int8 or bfloat16, got float32\[4, 5\]"):
        ops.linear_quantized(Tensor(np.ones((2, 5), np.float32)), Tensor(np.ones((4, 5), np.float32)))


@pytest.mark.parametrize("bits", [8, 13])
@pytest.mark.parametrize("M", [1, 2, 3, 4, 5, 7, 8, 9, 13, 33, 200, 400])
@pytest.mark.parametrize("N, K", [(3, 1), (16, 16), (50, 33), (100, 511), (70, 1037), (64, 3072)])
def test_sums_are_exact(M, N, K, bits):
    rng = np.random.default_rng(M * N + K)
    x = rng.standard_normal((M, K)).astype(np.float32)
    weight = rng.integers(-128, 128, (N, K), dtype=np.int8)
    q, unit = rounded(x, bits)
    sums = q @ weight.T.astype(np.int64)
    assert np.abs(sums).max() < 2**31
    y = ops.linear_quantized(Tensor(x), Tensor(weight), Tensor(np.ones(N, np.float32)), bits=bits).numpy()
    assert np.array_equal(y, sums.astype(np.float32) * (np.float32(1) * unit))


@pytest.mark.parametrize("bits, K", [(8, 5000), (8, 140_000), (13, 5000), (13, 140_000)])
@pytest.mark.parametrize("M", [1, 9, 40])
@pytest.mark.parametrize("side", [-128, 127])
def test_the_largest_sums_fit(bits, K, M, side):
    x, weight = np.ones((M, K), np.float32), np.full((16, K), side, np.int8)
    y = ops.linear_quantized(Tensor(x), Tensor(weight), Tensor(np.ones(16, np.float32)), bits=bits).numpy()
    assert np.allclose(y, float(side) * K, rtol=1e-6)


@pytest.mark.parametrize("bits", [8, 13])
def test_a_row_does_not_depend_on_the_others(bits):
    x, weight = RNG.standard_normal((40, 300)).astype(np.float32), int8(77, 300)
    scale = Tensor(RNG.random(77).astype(np.float32))
    bias = Tensor(RNG.standard_normal(77).astype(np.float32))
    whole = ops.linear_quantized(Tensor(x), Tensor(weight), scale, bias, "gelu", bits).numpy()
    for rows in (slice(0, 1), slice(3, 7), slice(5, 17)):
        part = ops.linear_quantized(Tensor(x[rows]), Tensor(weight), scale, bias, "gelu", bits).numpy()
        assert np.array_equal(part, whole[rows])


@pytest.mark.parametrize("bits", [8, 13])
def test_rows_of_zeros_small_numbers_and_numbers_that_are_none(bits):
    x = np.zeros((5, 20), np.float32)
    x[1, 3], x[2, 4], x[3, 0], x[4, 1] = np.nan, np.inf, 1e-44, 2.0
    weight = Tensor(np.ones((3, 20), np.int8))
    y = ops.linear_quantized(
        Tensor(x), weight, Tensor(np.ones(3, np.float32)), Tensor(np.full(3, 7, np.float32)), bits=bits
    ).numpy()
    assert (
        (y[0] == 7).all()
        and np.isnan(y[1]).all()
        and np.isnan(y[2]).all()
        and (y[3] == 7).all()
        and (y[4] == 9).all()
    )


@pytest.mark.skipif(not _core.multiplies_bytes(), reason="on this one all tests do without")
def test_processors_that_do_not_multiply_bytes():
    chosen = "exact or fit or others or zeros"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", chosen],
        env={**os.environ, "PLMCORE_VNNI": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout
