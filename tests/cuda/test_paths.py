"""Every way through the kernels for rows, indices and selections, against the CPU; the same bits in every
order of threads.
"""

import numpy as np
import pytest
from plmcore import Tensor, _core, ops

RNG = np.random.default_rng(7)
TOLERANCE = {"float32": 2e-5, "bfloat16": 3e-2}
ORDERS = ("forward", "reverse", "random")


def gradients(device, dtype, call, arrays, wanted):
    """Outputs and gradients of `call`."""
    inputs = {
        n: Tensor(a, dtype=dtype if a.dtype == "f8" else None, device=device) for n, a in arrays.items()
    }
    for name in wanted:
        inputs[name].requires_grad = True
    out = call(**inputs)
    outputs = [y for y in (out if isinstance(out, (list, tuple)) else [out])]
    used = [y for y in outputs if y.requires_grad]
    seeds = [Tensor(np.cos(np.arange(y.size)).reshape(y.shape), dtype=y.dtype, device=device) for y in used]
    found = _core.grad(used, [inputs[n] for n in wanted], seeds) if wanted else []
    return [t.numpy() for t in [*outputs, *found]]


def compare(dtype, call, arrays, wanted=()):
    """The device against the CPU in float64, both of the rounded inputs."""
    rounded = {
        n: Tensor(a, dtype=dtype).numpy().astype("f8") if a.dtype == "f8" else a for n, a in arrays.items()
    }
    exact = gradients("cpu", "float64", call, rounded, wanted)
    found = gradients("cuda", dtype, call, rounded, wanted)
    for k, (a, b) in enumerate(zip(exact, found, strict=True)):
        scale = max(1.0, np.abs(a).max(initial=0))
        np.testing.assert_allclose(
            b.astype("f8"), a, atol=TOLERANCE[dtype] * scale, rtol=0, err_msg=f"result {k}"
        )


# ---- rows: held by a warp, by a block, read again; whole packs, and a head and a tail ----

WIDTHS = [1, 5, 512, 513, 1024, 1030, 4093, 4096, 4100, 4500]


@pytest.mark.parametrize("C", WIDTHS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_softmaxes(C, dtype):
    for op in (ops.softmax, ops.log_softmax):
        compare(dtype, op, {"x": RNG.standard_normal((3, C))}, ["x"])


@pytest.mark.parametrize("C", WIDTHS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_norms(C, dtype):
    arrays = {n: RNG.standard_normal((5, C)) for n in ("x", "residual")}
    vectors = {n: RNG.standard_normal(C) for n in ("gamma", "beta")}
    call = lambda x, residual, gamma, beta: ops.residual_layer_norm(x, residual, gamma, beta, 1e-5)
    compare(dtype, call, arrays | vectors, [*arrays, *vectors])
    call = lambda x, gamma: ops.rms_norm(x, gamma, 1e-5)
    compare(dtype, call, {"x": arrays["x"], "gamma": vectors["gamma"]}, ["x", "gamma"])


@pytest.mark.parametrize("V", [3, 700, 4100, 9001])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(V, dtype, smoothing):
    labels = np.array([0, V - 1, -100, V // 2])
    call = lambda logits, labels: ops.cross_entropy(logits, labels, label_smoothing=smoothing)
    compare(dtype, call, {"logits": RNG.standard_normal((4, V)), "labels": labels}, ["logits"])


# ---- indices: several tiles of the sort, runs within a piece, over a border, over many pieces ----


def ids_of(kind, n):
    if kind == "one":
        return np.full(n, 3)
    if kind == "few":
        return RNG.integers(0, 3, n)
    return RNG.integers(0, 70000, n)  # three passes of 8 bits


@pytest.mark.parametrize("kind", ["one", "few", "many"])
@pytest.mark.parametrize("C", [3, 8])
def test_embedding_gradients(kind, C):
    n, V = 5000, 70000 if kind == "many" else 5
    arrays = {"weight": RNG.standard_normal((V, C)), "ids": ids_of(kind, n)}
    compare("float32", ops.embedding, arrays, ["weight"])


@pytest.mark.parametrize("kind", ["one", "few", "many"])
def test_embedding_gradient_of_rows(kind):
    ids = ids_of(kind, 3000)
    found = []
    for device in ("cpu", "cuda"):
        weight = Tensor(np.ones((70000, 4), "f4"), device=device, requires_grad=True)
        y = ops.embedding(weight, Tensor(ids, device=device), sparse=True)
        y.backward(Tensor(np.cos(np.arange(y.size)).reshape(y.shape), dtype="float32", device=device))
        found.append((weight.grad.rows.numpy(), weight.grad.values.numpy()))
    assert np.array_equal(found[0][0], found[1][0])
    dy = np.cos(np.arange(y.size)).reshape(y.shape).astype("f4").astype("f8")
    for row, values in zip(*found[1], strict=True):
        parts = dy[ids == row]
        assert np.all(np.abs(values - parts.sum(0)) <= 2e-7 * np.abs(parts).sum(0))


def test_whole_numbers_are_added_exactly():
    x, index = RNG.integers(-(2**60), 2**60, (6, 5)), RNG.integers(0, 6, 400)
    updates = RNG.integers(-(2**62), 2**62, (400, 5))
    expected, found = (
        ops.scatter_add(*(Tensor(a, device=d) for a in (x, index, updates))).numpy() for d in ("cpu", "cuda")
    )
    assert np.array_equal(expected, found)


def test_rows_that_a_mask_picks():
    mask = RNG.random((3, 1500)) < 0.4
    x = RNG.standard_normal((3, 1500, 2)).astype("f4")
    expected, found = (
        [t.numpy() for t in ops.pack_rows(Tensor(x, device=d), Tensor(mask, device=d))]
        for d in ("cpu", "cuda")
    )
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


# ---- the best of a row: one tile, several, two levels, rounds ----


@pytest.mark.parametrize("n", [1, 40, 4088, 4089, 9001])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_topk(n, dtype):
    x = np.round(RNG.standard_normal((2, n)), 1)  # many equals
    x[0, n // 2] = np.nan
    x[1, n // 3] = -np.inf
    for k in {1, min(n, 7), min(n, 1100) if n == 4089 else 1}:
        expected, found = (
            [t.numpy() for t in ops.topk(Tensor(x, dtype=dtype, device=d), k)] for d in ("cpu", "cuda")
        )
        assert np.array_equal(expected[1], found[1])
        assert np.array_equal(expected[0].astype("f8"), found[0].astype("f8"), equal_nan=True)


@pytest.mark.parametrize("V", [7, 6000])
def test_beams_of_unusual_values(V):
    logits = np.round(RNG.standard_normal((6, V)), 1).astype("f4")
    logits[1] = -np.inf
    logits[2, 3] = np.nan
    scores = np.array([[0, -1.5, 2], [-np.inf, np.nan, 0.25]], "f4")
    expected, found = (
        [t.numpy() for t in ops.beam_step(Tensor(logits, device=d), Tensor(scores, device=d), 6)]
        for d in ("cpu", "cuda")
    )
    np.testing.assert_allclose(expected[0], found[0], atol=1e-5)
    assert np.array_equal(expected[1], found[1]) and np.array_equal(expected[2], found[2])


# ---- bits ----

BITS = {
    "cross_entropy": lambda x: ops.cross_entropy(x, Tensor(np.arange(24) % 900, device="cuda")),
    "rms_norm": lambda x: ops.rms_norm(x, Tensor(np.ones(901, "f4"), device="cuda"), 1e-5),
    "embedding": lambda x: ops.embedding(x, Tensor(np.arange(700) % 24, device="cuda")),
    "topk": lambda x: ops.topk(x, 5)[0],
    "matmul": lambda x: ops.matmul(x, x, transpose_b=True),
}


@pytest.mark.parametrize("op", BITS)
def test_same_bits_in_every_order(op, monkeypatch):
    array = RNG.standard_normal((24, 901)).astype("f4")
    found = set()
    for order in ORDERS:
        monkeypatch.setenv("PLMCORE_EMU_ORDER", order)
        x = Tensor(array, device="cuda", requires_grad=True)
        y = BITS[op](x)
        y.sum().backward()
        found.add(y.numpy().tobytes() + x.grad.numpy().tobytes())
    assert len(found) == 1
