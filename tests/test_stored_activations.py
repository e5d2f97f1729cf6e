"""What the tape keeps in bfloat16: results of the forward pass stay, gradients are near, memory is less."""

import threading

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, nn, ops

rng = np.random.default_rng(0)


def values(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def leaf(*shape):
    return Tensor(values(*shape), requires_grad=True)


def gradients(run, *leaves, dtype="bfloat16"):
    for t in leaves:
        t.grad = None
    with plm.stored_activations(dtype):
        y = run(*leaves)
        y.sum().backward()
    return np.array(y.numpy()), [np.array(t.grad.numpy()) for t in leaves]


def near(a, b, tolerance=1e-2):
    return np.linalg.norm(a - b) <= tolerance * np.linalg.norm(b)


def block(x, w1, w2, g, b):
    h = ops.layer_norm(x, g, b, eps=1e-5)
    qkv = ops.reshape(ops.linear(h, w1), (2, 64, 3, 4, 16))
    y = ops.reshape(ops.attention(qkv, causal=True), (2, 64, 64))
    y, s = ops.residual_layer_norm(y, x, g, b, eps=1e-5)
    return ops.add(s, ops.tanh(ops.linear(ops.gelu(ops.linear(y, w2)), w2)))


def test_the_same_results_and_gradients_that_are_near():
    leaves = [leaf(2, 64, 64), leaf(192, 64), leaf(64, 64), leaf(64), leaf(64)]
    for t in leaves[1:3]:
        t.numpy()[:] /= 8
    exact, expected = gradients(block, *leaves, dtype="float32")
    y, got = gradients(block, *leaves)
    assert y.tobytes() == exact.tobytes()
    for a, e in zip(got, expected, strict=True):
        assert a.dtype == np.float32 and near(a, e) and a.tobytes() != e.tobytes()


def test_parameters_are_not_rounded_and_neither_are_views_of_them():
    x, w = leaf(64, 64), leaf(64 * 64)

    def run(x, w):
        return ops.linear(ops.affine(x, 1.0, 0.0), ops.narrow(ops.reshape(w, (64, 64)), 0, 64))

    _, (dx, dw) = gradients(run, x, w)
    _, (exact, expected) = gradients(run, x, w, dtype="float32")
    assert dx.tobytes() == exact.tobytes()  # dy W
    assert dw.tobytes() != expected.tobytes() and near(dw, expected)  # dy^T x


def test_logits_and_what_is_compared_are_not_rounded():
    x, labels = leaf(64, 100), Tensor(rng.integers(0, 100, 64))

    def loss(x):
        return ops.cross_entropy(ops.affine(x, 3.0, 0.0), labels)

    def largest(x):
        y = ops.affine(x, 1.0, 0.0)
        return ops.maximum(y, ops.affine(x, 1.0, 1e-6))

    for run in (loss, largest, lambda x: ops.log_softmax(ops.affine(x, 3.0, 0.0))):
        a, e = gradients(run, x), gradients(run, x, dtype="float32")
        assert a[0].tobytes() == e[0].tobytes() and a[1][0].tobytes() == e[1][0].tobytes()


def test_small_tensors_and_other_dtypes_stay_as_they_are():
    for x in (leaf(63, 65), Tensor(rng.standard_normal((100, 100)), requires_grad=True)):

        def run(x):
            y = ops.affine(x, 2.0, 0.5)
            return ops.mul(y, y)

        a, e = gradients(run, x), gradients(run, x, dtype="float32")
        assert a[1][0].tobytes() == e[1][0].tobytes()


def held(run):
    """Bytes that the tape of a result holds, with those of the result."""
    before = plm.memory_stats()["in_use"]
    y = run()
    assert y.requires_grad
    return plm.memory_stats()["in_use"] - before


def test_half_the_memory_and_one_copy_for_all_who_keep_a_tensor():
    w, x = leaf(256, 256), leaf(64, 256)
    one = 64 * 256 * 4

    def chain():
        y = ops.affine(x, 1.0, 0.0)
        for _ in range(10):
            y = ops.relu(ops.linear(y, w))  # kept by relu, and by the next product
        return y

    def fan():
        y = ops.affine(x, 1.0, 0.0)
        return ops.concat(
            [ops.mean(ops.linear(ops.reshape(y, (8, 8, 256)), w), [0, 1]) for _ in range(10)], 0
        )

    plain, plain_fan = held(chain), held(fan)
    with plm.stored_activations("bfloat16"):
        rounded, rounded_fan = held(chain), held(fan)
    assert plain >= 11 * one and rounded <= 7 * one
    assert plain_fan >= one and rounded_fan <= 0.7 * one


def test_a_product_keeps_its_result_only_if_its_slope_is_found_there():
    w, x = leaf(256, 256), leaf(64, 256)
    one = 64 * 256 * 4
    for activation, kept in (("none", 0), ("relu", 1), ("gelu", 1)):
        size = held(lambda activation=activation: ops.mean(ops.linear(x, w, None, activation)))
        assert kept * one <= size < (kept + 0.5) * one, activation


def test_recomputation():
    x, w = leaf(64, 128), leaf(128, 128)
    w.numpy()[:] /= 12

    def body(t):
        return ops.tanh(ops.linear(t, w))

    def run(x, w):
        y = ops.affine(x, 1.0, 0.0)
        for _ in range(4):
            y = plm.recompute(body, y, params=[w])
        return y

    y, got = gradients(run, x, w)
    exact, expected = gradients(run, x, w, dtype="float32")
    assert y.tobytes() == exact.tobytes()
    assert all(near(a, e) and a.tobytes() != e.tobytes() for a, e in zip(got, expected, strict=True))


def test_a_graph_that_is_used_twice():
    x = leaf(100, 100)
    with plm.stored_activations("bfloat16"):
        y = ops.affine(x, 1.0, 0.0)
        z = ops.mul(y, y).sum()
    first = plm.grad(z, x, retain_graph=True).numpy()
    assert np.array_equal(first, plm.grad(z, x).numpy()) and near(first, 2 * x.numpy())
    with pytest.raises(plm.GraphError, match="already used and freed"):
        plm.grad(z, x)


def test_the_mode_belongs_to_a_thread_and_ends_with_its_block():
    seen = []
    with plm.stored_activations("bfloat16"):
        with plm.stored_activations("float32"):
            assert not plm._core.rounds_activations()
        assert plm._core.rounds_activations()
        thread = threading.Thread(target=lambda: seen.append(plm._core.rounds_activations()))
        thread.start()
        thread.join()
    assert seen == [False] and not plm._core.rounds_activations()
    with pytest.raises(plm.ArgumentError, match="must be float32 or bfloat16, got 'float16'"):
        plm.stored_activations("float16")


def test_a_module_trains_in_it():
    plm.seed(0)
    layer = nn.MLP(64, 256)
    opt, x = plm.optim.SGD(layer.parameters(), lr=1.0), Tensor(values(128, 64))
    losses = []
    for _ in range(60):
        opt.zero_grad()
        with plm.stored_activations("bfloat16"):
            d = ops.sub(layer(x), x)
            loss = ops.mean(ops.mul(d, d))
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2 and all(
        p.dtype == p.grad.dtype == "float32" for p in layer.parameters()
    )
