"""Tensors on device "cuda": copies, gradients across devices, errors, and every way through the kernels."""

import os
import pathlib
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, _core, ops

RNG = np.random.default_rng(0)
DTYPES = ["float64", "float32", ml_dtypes.bfloat16, "float16", "int64", "int32", "int8", "uint8", "bool"]


def on_cuda(*shape, dtype="float32"):
    return Tensor(RNG.standard_normal(shape), dtype=dtype, device="cuda")


# ---- tensors ----


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 5), (7, 11, 13)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trip(shape, dtype):
    array = (RNG.standard_normal(shape) * 50).astype(dtype)
    there = Tensor(array, device="cuda")
    assert (there.device, there.to("cuda").device, there.to("cpu").device) == ("cuda", "cuda", "cpu")
    assert there.numpy().tobytes() == np.ascontiguousarray(array).tobytes()
    assert there.to("cpu").to("cuda").numpy().tobytes() == there.numpy().tobytes()


def test_to():
    x = Tensor([1.5, 2.5])
    assert (
        x.to("cpu") is not None
        and x.to("float64").dtype == "float64"
        and x.to(np.int32).numpy().tolist() == [1, 2]
    )
    with pytest.raises(RuntimeError, match="there is no device 'gpu': use"):
        x.to("gpu")
    assert "device=cuda" in repr(x.to("cuda"))
    assert Tensor(3.5, device="cuda").item() == 3.5


def test_gradient_goes_back_to_the_first_device():
    x = Tensor(RNG.standard_normal((3, 8)), dtype="float32", requires_grad=True)
    gamma, beta = Tensor(np.ones(8, "f4")), Tensor(np.zeros(8, "f4"))
    seed = Tensor(RNG.standard_normal((3, 8)), dtype="float32")
    expected = _core.grad([ops.layer_norm(x, gamma, beta, 1e-5)], [x], [seed])[0]
    y = ops.layer_norm(x.to("cuda"), gamma.to("cuda"), beta.to("cuda"), 1e-5).to("cpu")
    y.backward(seed)
    assert x.grad.device == "cpu"
    np.testing.assert_allclose(x.grad.numpy(), expected.numpy(), atol=1e-5)


def test_views_share_memory():
    x = on_cuda(6, 4)
    assert ops.reshape(x, [3, 8]).device == "cuda"
    np.testing.assert_array_equal(ops.narrow(x, 2, 3).numpy(), x.numpy()[2:5])


def test_memory():
    before = _core.memory_stats("cuda")["in_use"]
    x = on_cuda(1024, 256)
    assert _core.memory_stats("cuda")["in_use"] >= before + x.nbytes
    del x
    assert _core.memory_stats("cuda")["in_use"] == before
    with pytest.raises(MemoryError, match="cuda: cannot allocate"):
        Tensor(np.zeros(300 << 20, "u1"), device="cuda")
    _core.trim_memory("cuda")
    assert on_cuda(4).numpy().shape == (4,)


# ---- errors ----


def test_not_on_this_device_yet():
    x = on_cuda(3, 3)
    with pytest.raises(
        _core.DeviceError,
        match=r'pack_weight: not on this device yet \(cuda\); move its inputs with \.to\("cpu"\)',
    ):
        ops.pack_weight(x)  # a layout of the CPU
    missing = [op for op in _core.op_names() if not _core.has_kernel(op, "cuda")]
    assert "pack_weight" in missing and "layer_norm" not in missing


def test_mixed_devices():
    with pytest.raises(_core.DeviceError, match="layer_norm: inputs are on different devices, cuda and cpu"):
        ops.layer_norm(on_cuda(2, 4), Tensor(np.ones(4, "f4")), Tensor(np.zeros(4, "f4")), 1e-5)


BAD_INDEX = r"gather: index 7 at position \[1, 0\] is out of range for an axis of size 3"


def test_a_bad_index_is_raised_by_the_next_wait(order):
    """The first one, by position, of the first op that met any; then the device goes on."""
    x = Tensor(np.arange(6, dtype="f4").reshape(2, 3), device="cuda")
    bad = Tensor(np.array([[0, 2], [7, -1]]), device="cuda")
    y = ops.gather(x, bad, 1)
    ops.one_hot(bad, 2)
    with pytest.raises(IndexError, match=BAD_INDEX):
        plm.cuda.synchronize()
    assert y.numpy().tolist() == [[0, 2], [0, 0]]  # the accesses were left out
    good = Tensor(np.array([[1], [2]]), device="cuda")
    assert ops.gather(x, good, 1).numpy().tolist() == [[1], [5]]


def test_sync_raises_it_at_the_call():
    program = (
        "import numpy as np, plmcore as plm\n"
        "from plmcore import ops\n"
        "x, bad = (plm.Tensor(np.array(a), device='cuda') for a in ([[1.0], [2.0]], [[0], [1]]))\n"
        "try: ops.gather(x, bad, 1)\n"
        "except IndexError as e: print(e)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PLMCORE_CUDA_SYNC": "1"},
    )
    assert done.stdout == "gather: index 1 at position [1, 0] is out of range for an axis of size 1\n"


def test_random_numbers_are_those_of_the_cpu():
    for draw in (
        lambda x: ops.dropout(x, 0.3),
        lambda x: ops.dropout(x, 0.3, locked=True),
    ):
        found = []
        for device in ("cpu", "cuda"):
            plm.seed(3)
            found.append(draw(Tensor(np.ones((3, 7, 45), "f4"), device=device)).numpy().tobytes())
        assert found[0] == found[1]


def test_is_available():
    assert plm.cuda.is_available() and plm.cuda.problem() == ""
    plm.cuda.synchronize()


@pytest.mark.parametrize(
    ("plugin", "sentence"),
    [
        (
            "/nowhere/libplmcore_cuda.so",
            r"the cuda plug-in cannot be opened (/nowhere/libplmcore_cuda.so: cannot open shared "
            r"object file: No such file or directory); install it with: pip install 'plmcore[cuda13]'",
        ),
        ("libc.so.6", "libc.so.6 is not a plmcore plug-in"),
    ],
)
def test_missing_plugin(plugin, sentence):
    program = (
        "import plmcore as plm\n"
        "assert not plm.cuda.is_available()\n"
        "print(plm.cuda.problem())\n"
        "try: plm.Tensor([1.0]).to('cuda')\n"
        "except RuntimeError as e: assert str(e) == plm.cuda.problem()\n"
        "else: raise AssertionError\n"
    )
    environment = os.environ | {
        "PLMCORE_CUDA_PLUGIN": plugin,
        "PYTHONPATH": str(pathlib.Path(plm.__file__).parent.parent),
    }
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, env=environment
    )
    assert done.stdout.strip() == sentence, done.stderr


def test_the_plugin_exports_its_entry_alone():
    names = subprocess.run(
        ["nm", "-D", "--defined-only", os.environ["PLMCORE_CUDA_PLUGIN"]],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[2::3]
    assert names == ["plmcore_plugin"]


def test_a_fault_is_a_device_error_and_the_process_goes_on(monkeypatch):
    x = on_cuda(2, 8)
    with monkeypatch.context() as m:
        m.setenv("PLMCORE_EMU_ORDER", "sideways")
        with pytest.raises(
            _core.DeviceError, match=r"cuda: .* failed: the emulator found a fault: PLMCORE_EMU_ORDER must be"
        ):
            ops.layer_norm(x, on_cuda(8), on_cuda(8), 1e-5).numpy()
    assert np.isfinite(ops.layer_norm(x, on_cuda(8), on_cuda(8), 1e-5).numpy()).all()


# ---- every way through the kernels ----

# By warp (two widths), by block in packs, by block one by one; one row and several; more rows than a chunk.
ROWS = [(1, 4), (5, 512), (3, 1024), (2, 1028), (2, 2056), (3, 37), (2, 1025), (1500, 4)]


def compare(op, tensors, tol, **attrs):
    """Values and gradients on the device against the CPU."""
    results = []
    for device in ("cpu", "cuda"):
        inputs = [t.detach().to(device) for t in tensors]
        for t in inputs:
            t.requires_grad = True
        y = op(*inputs, **attrs)
        seed = Tensor(np.cos(np.arange(y.size)).reshape(y.shape), dtype=y.dtype, device=device)
        results.append([y, *_core.grad([y], inputs, [seed])])
    for name, *pair in zip(["y", *(f"gradient {i}" for i in range(len(tensors)))], *results, strict=True):
        a, b = (t.numpy().astype("f8") for t in pair)
        scale = max(1.0, np.abs(a).max(initial=0))
        np.testing.assert_allclose(b, a, atol=tol * scale, rtol=0, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", ROWS)
def test_layer_norm(shape, dtype, order):
    C = shape[-1]
    x, gamma, beta = (Tensor(RNG.standard_normal(s), dtype=dtype) for s in (shape, (C,), (C,)))
    compare(ops.layer_norm, [x, gamma, beta], 2e-5 if dtype == "float32" else 2e-2, eps=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", ROWS)
def test_softmax(shape, dtype, order):
    compare(
        ops.softmax,
        [Tensor(4 * RNG.standard_normal(shape), dtype=dtype)],
        1e-6 if dtype == "float32" else 1e-2,
    )


@pytest.mark.parametrize("C", [8, 1028, 37])
def test_softmax_of_unusual_values(C):
    x = RNG.standard_normal((5, C)).astype("f4")
    x[0, : C // 2] = -np.inf  # masked
    x[1] = -np.inf
    x[2, 3] = np.nan
    x[3, 3] = np.inf
    x[4] = 1e30
    a, b = ops.softmax(Tensor(x)).numpy(), ops.softmax(Tensor(x, device="cuda")).numpy()
    assert np.isfinite(b[0]).all() and (b[0, : C // 2] == 0).all()
    assert np.isnan(b[2]).all()
    np.testing.assert_allclose(b, a, atol=1e-6)


@pytest.mark.parametrize("activation", ["none", "relu", "gelu", "gelu_tanh", "tanh", "sigmoid", "silu"])
@pytest.mark.parametrize(("M", "K", "N"), [(3, 5, 8), (4, 16, 24), (40, 7, 33)])
def test_linear(M, K, N, activation, order):
    x, w, b = (Tensor(RNG.standard_normal(s), dtype="float32") for s in ((M, K), (N, K), (N,)))
    compare(ops.linear, [x, w, b], 1e-5, activation=activation)
    with_grad_off = _core.set_grad_enabled(False)  # another way: activations in the product's epilogue
    try:
        y = ops.linear(x.to("cuda"), w.to("cuda"), b.to("cuda"), activation=activation)
        np.testing.assert_allclose(y.numpy(), ops.linear(x, w, b, activation=activation).numpy(), atol=1e-5)
    finally:
        _core.set_grad_enabled(with_grad_off)


@pytest.mark.parametrize(("op", "C"), [("layer_norm", 8), ("layer_norm", 7), ("softmax", 9), ("linear", 5)])
def test_views_that_start_anywhere(op, C):
    """Rows 1.. of a tensor: their address is a multiple of the element's size and of nothing more."""
    whole = RNG.standard_normal((6, C)).astype("f4")
    cpu, cuda = (ops.narrow(Tensor(whole, device=d), 1, 4) for d in ("cpu", "cuda"))
    other = [
        RNG.standard_normal(s).astype("f4")
        for s in {"layer_norm": [(C,), (C,)], "softmax": [], "linear": [(4, C), (4,)]}[op]
    ]
    attrs = {"eps": 1e-5} if op == "layer_norm" else {}
    expected = getattr(ops, op)(cpu, *map(Tensor, other), **attrs).numpy()
    np.testing.assert_allclose(
        getattr(ops, op)(cuda, *(Tensor(a, device="cuda") for a in other), **attrs).numpy(),
        expected,
        atol=1e-5,
    )


def test_same_bits_on_every_run(monkeypatch):
    x, gamma, beta = on_cuda(300, 40), on_cuda(40), on_cuda(40)
    found = set()
    for order in ("forward", "reverse", "random"):
        monkeypatch.setenv("PLMCORE_EMU_ORDER", order)
        inputs = [t.detach() for t in (x, gamma, beta)]
        for t in inputs:
            t.requires_grad = True
        y = ops.layer_norm(*inputs, 1e-5)
        found.add(b"".join(t.numpy().tobytes() for t in (y, *_core.grad([y], inputs, [x]))))
    assert len(found) == 1


def test_two_threads_at_once():
    x, gamma, beta = on_cuda(20, 64), on_cuda(64), on_cuda(64)
    expected = ops.layer_norm(x, gamma, beta, 1e-5).numpy()
    wrong = []

    def work():
        for _ in range(10):
            if ops.layer_norm(x, gamma, beta, 1e-5).numpy().tobytes() != expected.tobytes():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# ---- workspaces ----


def test_a_kernel_gets_the_memory_it_asks_for():
    """linear asks cuBLASLt for nothing beside its output; the CPU's kernel would have room for a packed
    weight.
    """
    x, w = on_cuda(256, 768), on_cuda(768, 768)
    before = plm.memory_stats("cuda")["in_use"]
    plm.reset_peak_memory("cuda")
    y = ops.linear(x, w)
    assert plm.memory_stats("cuda")["peak"] - before == y.numpy().nbytes
