"""Attention on device "cuda" beyond the op declarations: every head width, order of threads, layout and tile
against the CPU; errors in data; the same bits on every run.
"""

import numpy as np
import optest
import plmcore as plm
import pytest
from plmcore import Tensor, _core, ops

RNG = np.random.default_rng(4)
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "bfloat16": 3e-2, "float16": 4e-3}


def run(device, dtype, arrays, **options):
    """Outputs and gradients, as float64."""
    _core.manual_seed(11)
    floats = [n for n in ("q", "k", "v", "bias") if n in arrays]
    inputs = {n: Tensor(a, dtype=dtype if n in floats else None, device=device) for n, a in arrays.items()}
    for name in floats:
        inputs[name].requires_grad = True
    out = ops.attention(**inputs, **options)
    outputs = list(out) if isinstance(out, (tuple, list)) else [out]
    seeds = [
        Tensor(np.cos(np.arange(y.size)).reshape(y.shape), dtype=y.dtype, device=device) for y in outputs
    ]
    found = [*outputs, *_core.grad(outputs, [inputs[n] for n in floats], seeds)]
    return [t.numpy().astype("f8") for t in found], [t.numpy().tobytes() for t in found]


def compare(dtype, arrays, **options):
    """The device in `dtype` against the CPU in float64, both of the rounded inputs."""
    rounded = {
        n: Tensor(a, dtype=dtype).numpy().astype("f8") if a.dtype == "f8" else a for n, a in arrays.items()
    }
    exact, _ = run("cpu", "float64", rounded, **options)
    found, bits = run("cuda", dtype, rounded, **options)
    for name, (a, b) in enumerate(zip(exact, found, strict=True)):
        scale = max(1.0, np.abs(a).max(initial=0))
        np.testing.assert_allclose(b, a, atol=TOLERANCE[dtype] * scale, rtol=0, err_msg=f"result {name}")
    return bits


def heads(B, T, S, H, D):
    return {n: RNG.standard_normal((B, rows, H, D)) for n, rows in (("q", T), ("k", S), ("v", S))}


# Head widths: those of the tensor cores' kernels, between them, odd ones, and beyond.
@pytest.mark.parametrize("D", [1, 8, 32, 40, 64, 65, 96, 128, 160, 256, 264])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_widths(D, dtype):
    compare(dtype, heads(1, 70, 135, 1, D), causal=True)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_orders(dtype, order):
    """Two tiles of queries and three of keys, with all that can be asked for."""
    arrays = heads(2, 66, 130, 2, 32) | {
        "bias": RNG.standard_normal((1, 2, 66, 130)),
        "mask": RNG.random((2, 1, 66, 130)) < 0.8,
        "lengths": np.array([130, 71]),
    }
    compare(dtype, arrays, causal=True, dropout=0.2, weights=True)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_ragged_orders(dtype, order):
    offsets = np.array([0, 1, 70, 70, 198, 200], np.int32)
    arrays = {"q": RNG.standard_normal((200, 3, 2, 64)), "offsets": offsets}
    compare(dtype, arrays, causal=True, band=50, dropout=0.1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("T", [1, 2, 3, 4, 7])
def test_few_queries_over_a_cache(T, dtype, order):
    """Keys are split over blocks; the last piece is short, and a sequence ends before it."""
    arrays = heads(2, T, 700, 2, 64) | {"lengths": np.array([700, 33])}
    compare(dtype, arrays)
    bias = {"bias": RNG.standard_normal((1, 2, T, 700)), "start": np.array([100, 600])}
    compare(dtype, heads(2, T, 700, 2, 24) | bias, causal=True, band=90)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_same_bits_on_every_run(dtype, monkeypatch):
    arrays = heads(1, 90, 140, 2, 64) | {"bias": RNG.standard_normal((1, 1, 90, 140))}
    found = set()
    for order in ("forward", "reverse", "random"):
        monkeypatch.setenv("PLMCORE_EMU_ORDER", order)
        found.add(b"".join(run("cuda", dtype, arrays, dropout=0.1)[1]))
    assert len(found) == 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("D", [8, 5])
def test_views_that_start_anywhere(D, dtype):
    whole = [RNG.standard_normal(1 + 2 * 40 * 2 * D).astype("f4") for _ in range(3)]

    def at(device):
        return [
            ops.reshape(ops.narrow(Tensor(a, dtype=dtype, device=device), 1, a.size - 1), [2, 40, 2, D])
            for a in whole
        ]

    expected, found = (ops.attention(*at(d)).numpy().astype("f8") for d in ("cpu", "cuda"))
    np.testing.assert_allclose(found, expected, atol=TOLERANCE[dtype])


def test_dropout_has_the_bits_of_the_cpu():
    x = np.ones((2, 70, 2, 8), "f4")
    zeros = []
    for device in ("cpu", "cuda"):
        plm.seed(5)
        q = Tensor(x, device=device)
        zeros.append(ops.attention(q, q, q, dropout=0.3, weights=True)[1].numpy() == 0)
    assert np.array_equal(*zeros)
    assert abs(zeros[0].mean() - 0.3) < 0.02


def test_unusual_values():
    q, k, v = (a.astype("f4") for a in heads(1, 70, 90, 1, 8).values())
    q[0, 3, 0, 0] = np.nan
    v[0, 5, 0, 2] = np.inf
    k[0, 80:] = v[0, 80:] = np.nan  # beyond the length: never read
    for dtype in ("float32", "bfloat16"):
        tensors = (Tensor(a, dtype=dtype, device="cuda") for a in (q, k, v))
        n = Tensor(np.array([80]), device="cuda")
        out = ops.attention(*tensors, lengths=n).numpy().astype("f8")[0, :, 0]
        assert np.isnan(out[3]).all()
        rest = np.delete(out, 3, 0)
        assert np.isposinf(rest[:, 2]).all() and np.isfinite(np.delete(rest, 2, 1)).all()


ERRORS = [(s, e) for s in optest.all_specs() if s.name == "attention" for e in s.errors]


@pytest.mark.parametrize("k", range(len(ERRORS)))
def test_errors(k, monkeypatch):
    """The declarations' errors, those in data too: the CPU's sentence, and the device goes on."""
    monkeypatch.setattr(optest, "DEVICE", "cuda")
    spec, error = ERRORS[k]
    spec.check_error(*error)
