"""Weights that lie in a file in parts, or transposed, are put together when somebody looks at them.

Nobody may notice.
"""

import gc
import threading
from functools import partial

import numpy as np
import plmcore as plm
import pytest
from plmcore import _core, nn, ops
from plmcore._core.safetensors import laid_out_later

N, K = 309, 130
BYTES = N * K * 4
rng = np.random.default_rng(3)
OWN = ("v3", "v4")  # instruction sets whose products run on our own engine
WEIGHT = rng.standard_normal((N, K)).astype(np.float32)
BIAS = rng.standard_normal(N).astype(np.float32)
KINDS = [(1, True), (3, False), (3, True)]
ACTIVATIONS = ["none", "relu", "gelu", "gelu_tanh", "tanh", "sigmoid", "silu"]


def stored(parts, transposed, weight=WEIGHT):
    rows = np.split(weight, parts)
    return laid_out_later(
        [plm.Tensor(np.ascontiguousarray(r.T if transposed else r)) for r in rows], transposed
    )


def grown(call) -> int:
    gc.collect()
    before = plm.memory_stats()["in_use"]
    call()
    gc.collect()
    return plm.memory_stats()["in_use"] - before


def x_of(rows):
    return plm.Tensor(np.random.default_rng(rows).standard_normal((rows, K)).astype(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_values(kind, dtype):
    weight = (WEIGHT * 10).astype(dtype)
    t = stored(*kind, weight)
    assert t.shape == weight.shape and t.dtype == dtype
    assert t.numpy().tobytes() == weight.tobytes()


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_memory_is_taken_once_on_first_look(kind):
    # Stay, as a file's.
    parts = [plm.Tensor(np.ascontiguousarray(r.T if kind[1] else r)) for r in np.split(WEIGHT, kind[0])]
    t = laid_out_later(parts, kind[1])
    layer = nn.Linear(K, N, weight=nn.Parameter(t))
    with plm.no_grad():
        assert grown(lambda: [layer(x_of(rows)) for rows in (9, 64, 192)]) < BYTES
        assert BYTES <= grown(lambda: t.numpy()) < 2 * BYTES
        assert grown(lambda: t.numpy()) == 0 == grown(lambda: layer.weight.numpy())


@pytest.mark.skipif(_core.isa() not in OWN, reason="other engines lose nothing over transposed weights")
def test_a_transposed_weight_in_steady_use_is_laid_out():
    part, x = plm.Tensor(np.ascontiguousarray(WEIGHT.T)), x_of(50)  # held here, so that its memory stays
    t = laid_out_later([part], True)
    with plm.no_grad():
        assert grown(lambda: [ops.linear(x, t) for _ in range(4)]) < BYTES
        assert grown(lambda: ops.linear(x, t)) >= BYTES


@pytest.mark.parametrize("rows", [0, 1, 8, 9, 33, 128, 192, 193, 400])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_products(kind, rows):
    """Equal bits where products run on one engine, but for what a compiler makes of an activation in two
    places; a BLAS may sum in another order.
    """
    x, plain, bias = x_of(rows), plm.Tensor(WEIGHT), plm.Tensor(BIAS)
    with plm.no_grad():
        for activation in ACTIVATIONS:
            for b in (bias, None):
                got = ops.linear(x, stored(*kind), b, activation).numpy()
                want = ops.linear(x, plain, b, activation).numpy()
                if _core.isa() in OWN:
                    assert_equal = (
                        np.testing.assert_array_equal
                        if activation in (None, "relu")
                        else partial(np.testing.assert_array_max_ulp, maxulp=2)
                    )
                    assert_equal(got, want)
                else:
                    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_leading_axes_and_errors(kind):
    x, plain = plm.Tensor(rng.standard_normal((2, 3, 5, K)).astype(np.float32)), plm.Tensor(WEIGHT)
    with plm.no_grad():
        got = ops.linear(x, stored(*kind))
        assert got.shape == (2, 3, 5, N)
        np.testing.assert_allclose(got.numpy(), ops.linear(x, plain).numpy(), rtol=1e-5, atol=1e-4)
        for wrong in (dict(x=plm.Tensor(np.ones((20, K + 1), np.float32))), dict(bias=plm.Tensor(BIAS[1:]))):
            arguments = {"x": x, "bias": None} | wrong
            with pytest.raises(ValueError) as plainly:
                ops.linear(arguments["x"], plain, arguments["bias"])
            with pytest.raises(ValueError) as later:
                ops.linear(arguments["x"], stored(*kind), arguments["bias"])
            assert str(plainly.value) == str(later.value)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_steps_and_writes_are_seen(kind):
    layer = nn.Linear(K, N, weight=nn.Parameter(stored(*kind)), bias_init=nn.init.zeros)
    x = x_of(40)
    with plm.no_grad():
        layer(x)
    layer(x).sum().backward()
    plm.optim.SGD(layer.parameters(), lr=0.1).step()
    changed = WEIGHT - np.float32(0.1) * layer.weight.grad.numpy()
    np.testing.assert_allclose(layer.weight.numpy(), changed, rtol=1e-5, atol=1e-5)
    layer.weight.numpy()[:] = 0
    with plm.no_grad():
        assert not (layer(x).numpy() - layer.bias.numpy()).any()


def test_a_view_and_a_trace_look_at_the_values():
    t = stored(3, True)
    np.testing.assert_array_equal(ops.narrow(t, 5, 7).numpy(), WEIGHT[5:12])
    layer, x = nn.Linear(K, N, weight=nn.Parameter(stored(1, True))), x_of(20)
    with plm.no_grad():
        program = plm.trace(layer, x=plm.spec("float32", "N", K))
        np.testing.assert_allclose(program(x=x).numpy(), layer(x).numpy(), rtol=1e-5, atol=1e-4)


def test_several_threads_look_at_once():
    for _ in range(20):
        t, found = stored(3, True), []
        gate = threading.Barrier(4)

        def look(t=t, found=found, gate=gate):
            gate.wait()
            found.append(t.numpy())

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({a.ctypes.data for a in found}) == 1
        np.testing.assert_array_equal(found[0], WEIGHT)


def test_parts_must_fit():
    a = plm.Tensor(WEIGHT)
    for parts in (
        [],
        [a, plm.Tensor(WEIGHT[:, 1:])],
        [a, plm.Tensor(WEIGHT.astype(np.float64))],
        [plm.Tensor(BIAS)],
    ):
        with pytest.raises(ValueError, match="stored weight"):
            laid_out_later(parts, False)


@pytest.mark.parametrize("model_type", ["gpt2", "bert"])
def test_a_directory_takes_no_memory_before_it_is_used(tmp_path, model_type):
    sizes = {"n_embd": 256, "n_layer": 2, "n_head": 4} if model_type == "gpt2" else {
        "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 1024
    }  # fmt: skip
    fresh = plm.from_config({"model_type": model_type, "vocab_size": 100, **sizes})
    fresh.save(tmp_path)
    loaded = []
    total = sum(p.nbytes for p in fresh.parameters())
    assert grown(lambda: loaded.append(plm.load(tmp_path))) < total / 10
    lm, ids = loaded[0], rng.integers(0, 100, (1, 20))
    with plm.no_grad():
        first = lm(input_ids=ids).last_hidden_state.numpy()
        want = fresh.eval()(input_ids=ids).last_hidden_state.numpy()
    np.testing.assert_allclose(first, want, rtol=1e-4, atol=1e-5)
    for (name, a), (_, b) in zip(lm.named_parameters(), fresh.named_parameters(), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes(), name
