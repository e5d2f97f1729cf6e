"""The tape: accumulation, modes, chosen gradients, recomputation, freed graphs, deep graphs, threads."""

import gc
import threading
import time

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, ops


def leaf(*values):
    return Tensor(np.array(values, np.float64), requires_grad=True)


# ---- accumulation ----


def test_gradients_add_up_over_uses_and_calls():
    w, x = leaf(2.0, 3.0), Tensor(np.array([5.0, 7.0]))
    y = w * x + w * w + w
    y.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), [5 + 4 + 1, 7 + 6 + 1])
    (w * x).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), [15, 21])
    w.zero_grad()
    (w * 1.0).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), [1, 1])


def test_an_earlier_gradient_is_not_changed_by_a_later_pass():
    w = leaf(1.0)
    (w * 2).backward()
    first = w.grad
    (w * 3).backward()
    assert first.item() == 2 and w.grad.item() == 5


def test_a_diamond_is_walked_once():
    x = leaf(1.5)
    y = x
    for _ in range(60):  # 2^60 paths
        y = y * 0.5 + y * 0.5
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), [1])


def test_an_output_used_beside_its_consumers():
    x = leaf(2.0)
    y = x * x
    z = y * 3
    (y + z).backward()
    np.testing.assert_allclose(x.grad.numpy(), [16])


def test_a_leaf_can_be_the_end():
    x = leaf(2.0)
    x.backward()
    assert x.grad.item() == 1
    assert plm.grad(x, x).item() == 1


def test_starting_gradient():
    x = leaf(1.0, 2.0)
    (x * x).backward(Tensor(np.array([10.0, 100.0])))
    np.testing.assert_allclose(x.grad.numpy(), [20, 400])
    (x * 1).backward(np.array([1.0, 1.0]))
    np.testing.assert_allclose(x.grad.numpy(), [21, 401])
    with pytest.raises(ValueError, match="must have one element"):
        (x * x).backward()
    with pytest.raises(ValueError, match="shape of the tensor"):
        (x * x).backward(Tensor(np.ones(3)))


def test_nothing_to_differentiate():
    with pytest.raises(plm.GraphError, match="requires_grad=True"):
        (Tensor([1.0]) * 2).backward()
    x = leaf(1.0)
    with pytest.raises(plm.GraphError, match="does not have requires_grad"):
        plm.grad((x * 2).sum(), Tensor(np.ones(1)))


def test_integers_cut_the_graph():
    x = leaf(1.0, 5.0)
    assert not (x > 2).requires_grad and not x.argmax().requires_grad and not x.astype("int64").requires_grad
    (x * (x > 2)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0, 1])


# ---- modes ----


def test_no_grad_and_enable_grad_nest():
    x = leaf(1.0)
    with plm.no_grad():
        assert not plm.grad_enabled() and not (x * 2).requires_grad
        with plm.enable_grad():
            assert (x * 2).requires_grad
            with plm.no_grad():
                assert not (x * 2).requires_grad
            assert plm.grad_enabled()
        assert not plm.grad_enabled()
    assert (x * 2).requires_grad
    mode = plm.no_grad()
    with mode, mode:
        pass
    assert plm.grad_enabled()
    with pytest.raises(ZeroDivisionError), plm.no_grad():
        1 / 0  # noqa: B018
    assert plm.grad_enabled()


def test_no_grad_decorates():
    x = leaf(1.0)

    @plm.no_grad()
    def double(t, depth=0):
        assert not plm.grad_enabled()
        return double(t, depth + 1) if depth < 3 else t * 2

    assert not double(x).requires_grad and plm.grad_enabled() and double.__name__ == "double"


def test_modes_belong_to_a_thread():
    x, seen, inside = leaf(1.0), [], threading.Event()
    mode = plm.no_grad()

    def other():
        inside.wait()
        seen.append((x * 2).requires_grad)
        with mode:
            seen.append((x * 2).requires_grad)
        seen.append((x * 2).requires_grad)

    t = threading.Thread(target=other)
    t.start()
    with mode:
        inside.set()
        t.join()
        assert not (x * 2).requires_grad
    assert seen == [True, False, True] and (x * 2).requires_grad


def test_stop_gradient():
    x = leaf(3.0)
    (x * plm.stop_gradient(x)).backward()
    assert x.grad.item() == 3


# ---- chosen tensors ----


def test_gradients_of_inner_tensors():
    x = leaf(2.0)
    a = x * x
    b = a * 3
    c = b * b
    da, db, dx = plm.grad(c, [a, b, x])
    assert (da.item(), db.item(), dx.item()) == (72, 24, 288)
    assert x.grad is None


def test_grad_of_several_outputs_with_seeds():
    x, y = leaf(2.0), leaf(5.0)
    found = plm.grad([x * y, x * 3], [x, y], seeds=[None, Tensor(np.array([10.0]))])
    assert isinstance(found, tuple) and [g.item() for g in found] == [35, 2]
    assert plm.grad(x * 2, [x, y])[1] is None
    assert plm.grad(x * 4, x).item() == 4


# ---- the graph's life ----


def test_second_use_of_a_freed_graph():
    x = leaf(2.0)
    y = x * x
    y.backward()
    with pytest.raises(
        plm.GraphError, match=r"graph of `mul` was already used and freed; pass retain_graph=True"
    ):
        y.backward()
    with pytest.raises(RuntimeError, match="already used and freed"):
        plm.grad(y * 2, x)
    z = x * x
    z.backward(retain_graph=True)
    z.backward()
    assert x.grad.item() == 12


def test_backward_frees_what_it_saved():
    x = Tensor(np.ones(1 << 18, np.float32), requires_grad=True)
    start = plm.memory_stats()["in_use"]
    y = x
    for _ in range(20):
        y = (y * 1.0001).tanh()
    loss = y.sum()
    held = plm.memory_stats()["in_use"] - start
    loss.backward()
    x.zero_grad()
    del y
    assert held > 20 << 20 and plm.memory_stats()["in_use"] - start <= 4096


def test_dropping_the_output_frees_the_graph():
    x = Tensor(np.ones(1 << 16, np.float32), requires_grad=True)
    start = plm.memory_stats()["in_use"]
    y = (x * x).tanh() * x
    assert plm.memory_stats()["in_use"] > start
    del y
    assert plm.memory_stats()["in_use"] == start


def test_a_graph_of_200_000_steps():
    x = Tensor(np.array([1.0], np.float32), requires_grad=True)
    y = x
    for _ in range(200_000):
        y = y + 0.0
    y.backward()
    assert x.grad.item() == 1
    del y
    y = x
    for _ in range(200_000):  # dropped without a backward pass
        y = y + 0.0
    del y
    gc.collect()


def test_a_deep_graph_of_views_and_lists():
    x = Tensor(np.ones((2, 2), np.float32), requires_grad=True)
    y = x
    for _ in range(20_000):
        a, b = y
        y = ops.concat([b.reshape(1, 2), a.reshape(1, 2)])
    y.sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 1]]


def test_an_error_in_a_rule_leaves_the_tape_usable():
    x = leaf(1.0, 2.0)
    y = x * x
    with pytest.raises(ValueError):
        plm.grad(y, x, seeds=Tensor(np.ones(3)))
    assert plm.grad_enabled()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [2, 4])


# ---- recomputation ----


def block(x, w, b):
    return ((x @ w).tanh() + b).tanh()


def test_recompute_gives_the_same_gradients_with_less_memory():
    rng = np.random.default_rng(0)
    data = [rng.standard_normal(s) for s in ((64, 32), (32, 32), (32,))]

    def run(layer):
        x, w, b = (Tensor(a, requires_grad=True) for a in data)
        start = plm.memory_stats()["in_use"]
        y = x
        for _ in range(8):
            y = layer(y, w, b)
        held = plm.memory_stats()["in_use"] - start
        loss = (y * y).sum()
        loss.backward()
        return held, loss.item(), [t.grad.numpy() for t in (x, w, b)]

    plain = run(block)
    for again in (
        run(lambda x, w, b: plm.recompute(block, x, w, b)),
        run(lambda x, w, b: plm.recompute(lambda t: block(t, w, b), x, params=[w, b])),
    ):
        assert again[1] == plain[1] and again[0] < 0.6 * plain[0]
        for a, b in zip(again[2], plain[2]):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_recompute_of_a_body_that_returns_nothing_in_a_place():
    x = plm.Tensor(np.ones(3, np.float32), requires_grad=True)
    y, nothing = plm.recompute(lambda t: (ops.mul(t, t), None), x)
    assert nothing is None
    ops.sum(y).backward()
    assert x.grad.numpy().tolist() == [2, 2, 2]


def test_recompute_replays_random_numbers():
    x = Tensor(np.ones((50, 50)), requires_grad=True)
    plm.seed(3)
    y = plm.recompute(lambda t: ops.dropout(ops.dropout(t, 0.5) * t, 0.3), x)
    after = plm.random_state()
    y.sum().backward()
    assert plm.random_state() == after
    plm.seed(3)
    z = Tensor(np.ones((50, 50)), requires_grad=True)
    w = ops.dropout(ops.dropout(z, 0.5) * z, 0.3)
    w.sum().backward()
    np.testing.assert_array_equal(y.numpy(), w.numpy())
    np.testing.assert_array_equal(x.grad.numpy(), z.grad.numpy())


def test_recompute_shapes_of_calls():
    x, y = leaf(2.0), leaf(3.0)
    a, b = plm.recompute(lambda u, flag, v: (u * v, u + v) if flag else None, x, True, y)
    (a * b).backward()  # (xy)(x + y)
    assert (x.grad.item(), y.grad.item()) == (2 * 2 * 3 + 9, 4 + 2 * 2 * 3)
    z = leaf(2.0)
    inner = plm.recompute(lambda t: plm.recompute(lambda u: u * u, t) * t, z)
    inner.backward()
    assert z.grad.item() == 12
    assert plm.recompute(lambda t: t * 2, Tensor([1.0])).item() == 2
    with plm.no_grad():
        assert not plm.recompute(lambda t: t * 2, z).requires_grad


def test_recompute_reports_errors_and_forgotten_parameters():
    x, w = leaf(1.0), leaf(2.0)
    y = plm.recompute(lambda t: t * w, x)
    with pytest.raises(plm.GraphError, match="not passed in `params`"):
        y.backward()
    with pytest.raises(ZeroDivisionError):
        plm.recompute(lambda t: t * (1 / 0), x)
    calls = []

    def second_time_fails(t):
        calls.append(1)
        if len(calls) == 2:
            raise KeyError("inside")
        return t * 2

    y = plm.recompute(second_time_fails, x)
    with pytest.raises(KeyError, match="inside"):
        y.backward()
    assert plm.grad_enabled()


def test_recompute_keeps_and_drops_its_function():
    class Layer:
        def __call__(self, t):
            return t * 2

    import weakref

    layer = Layer()
    watch = weakref.ref(layer)
    x = leaf(1.0)
    y = plm.recompute(layer, x)
    del layer
    gc.collect()
    assert watch() is not None
    y.backward()
    assert x.grad.item() == 2 and watch() is None


# ---- threads ----


def test_two_threads_train_at_once():
    shared = Tensor(np.ones((64, 64), np.float32), requires_grad=True)
    errors = []

    def work(seed):
        try:
            rng = np.random.default_rng(seed)
            x = Tensor(rng.standard_normal((64, 64)).astype(np.float32))
            for _ in range(30):
                ((x @ shared).tanh() * x).sum().backward()
        except Exception as e:
            errors.append(e)

    def reference(seed):
        w = Tensor(np.ones((64, 64), np.float32), requires_grad=True)
        x = Tensor(np.random.default_rng(seed).standard_normal((64, 64)).astype(np.float32))
        ((x @ w).tanh() * x).sum().backward()
        return w.grad.numpy().astype(np.float64) * 30

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    want = sum(reference(s) for s in range(4))
    np.testing.assert_allclose(shared.grad.numpy(), want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


def test_backward_lets_other_threads_run():
    x = Tensor(np.ones((400, 400), np.float32), requires_grad=True)
    y = x
    for _ in range(30):
        y = (y @ x).tanh()
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    t = threading.Thread(target=tick)
    t.start()
    start = time.perf_counter()
    y.sum().backward()
    end = time.perf_counter()
    stop.set()
    t.join()
    assert end - start < 0.02 or any(start < at < end for at in ticks)
