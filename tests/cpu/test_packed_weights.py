"""Inference keeps a packed copy of a parameter. Who changes the parameter must never meet the old values."""

import gc

import numpy as np
import plmcore as plm
import pytest
from plmcore import _core, nn, ops
from plmcore._core import Packing

pytestmark = pytest.mark.skipif(
    _core.isa() not in ("v3", "v4"), reason="copies are kept where plain products run on the same engine"
)

N, K = 301, 130
BYTES = N * K * 4


@pytest.fixture
def layer():
    return nn.Linear(K, N)


X = plm.Tensor(np.random.default_rng(5).standard_normal((200, K), dtype=np.float32))


def infer(layer, x=X):
    with plm.no_grad():
        return layer(x).numpy().copy()


def expected(layer, x=X):
    """By the plain product: gradients are on."""
    return layer(x).numpy().copy()


def kept(call) -> bool:
    gc.collect()
    before = plm.memory_stats()["in_use"]
    call()
    gc.collect()
    return plm.memory_stats()["in_use"] - before >= BYTES


def test_a_copy_is_kept_and_gives_the_same_bits(layer):
    plain = expected(layer)
    assert kept(lambda: infer(layer))
    assert not kept(lambda: infer(layer))  # once
    assert np.array_equal(infer(layer), plain)


def test_none_with_gradients_few_rows_or_plain_tensors(layer):
    assert not kept(lambda: [expected(layer) for _ in range(9)])
    assert not kept(lambda: [infer(layer, plm.Tensor(np.ones((63, K), np.float32))) for _ in range(9)])
    weight = plm.Tensor(np.ones((N, K), np.float32))
    assert not kept(lambda: ops.linear(X, weight))


def test_short_inputs_wait_for_none_and_get_one_when_they_come_often(layer):
    short = plm.Tensor(np.random.default_rng(6).standard_normal((64, K), dtype=np.float32))
    plain = expected(layer, short)
    assert not kept(lambda: [infer(layer, short) for _ in range(4)])
    assert kept(lambda: infer(layer, short))
    assert np.array_equal(infer(layer, short), plain)


def test_an_optimiser_step_is_seen(layer):
    infer(layer)
    optimiser = plm.optim.SGD(layer.parameters(), lr=0.5)
    layer(X).backward(plm.Tensor(np.ones((len(X), N), np.float32)))
    optimiser.step()
    assert np.array_equal(infer(layer), expected(layer))


def test_a_loaded_state_is_seen(layer):
    infer(layer)
    layer.load_state_dict({"weight": np.full((N, K), 2, np.float32), "bias": np.zeros(N, np.float32)})
    assert np.array_equal(infer(layer), expected(layer))


@pytest.mark.parametrize("view", [lambda w: w.numpy(), np.from_dlpack], ids=["numpy", "dlpack"])
def test_writing_through_a_view_is_seen(layer, view):
    infer(layer)
    array = view(layer.weight.detach())
    if not array.flags.writeable:
        array.flags.writeable = True
    for value in (1.0, 2.0):
        array[:] = value
        assert np.array_equal(infer(layer), expected(layer))
    del array
    assert kept(lambda: infer(layer))  # nobody can write there any more


def test_memory_of_others_keeps_none():
    array = np.ones((N, K), np.float32)
    layer = nn.Linear(K, N, bias=False)
    layer.weight = nn.Parameter(plm.from_numpy(array))
    infer(layer)
    array[:] = 3
    assert np.array_equal(infer(layer), expected(layer))


def test_errors_are_those_of_linear(layer):
    with plm.no_grad(), pytest.raises(plm.ShapeError, match="linear: the last axis of x must be 130"):
        layer(plm.Tensor(np.ones((40, K + 1), np.float32)))
    with plm.no_grad(), pytest.raises(plm.ShapeError, match="bias must be"):
        ops.linear(X, layer.weight, plm.Tensor(np.ones(N + 1, np.float32)))


def test_a_thread_can_do_without_new_copies():
    """`found` makes none and uses what is there; no bit of a product changes."""
    rng = np.random.default_rng(4)
    weight = nn.Parameter(plm.Tensor(rng.normal(size=(64, 48)).astype(np.float32)))
    x = plm.Tensor(rng.normal(size=(200, 48)).astype(np.float32))

    def run(how):
        before = _core.set_packing(how)
        try:
            with plm.no_grad():
                y = plm.ops.linear(x, weight).numpy().copy()
        finally:
            assert _core.set_packing(before) == how
        return y, plm.memory_stats()["in_use"]

    plain, start = run(Packing.found)
    assert run(Packing.found)[1] == start
    packed, kept = run(Packing.usual)
    assert kept > start
    found, after = run(Packing.found)
    assert after == kept
    np.testing.assert_array_equal(packed, plain)
    np.testing.assert_array_equal(found, plain)


def test_a_program_keeps_one_too(layer, tmp_path):
    """From its file, and in memory over the layer's own weight; a training step makes none."""
    with plm.no_grad():
        program = plm.trace(layer, x=plm.spec("float32", "N", K))
    plain = expected(layer)
    plm.export(program, tmp_path / "layer.plm")
    loaded = plm.load_program(tmp_path / "layer.plm")
    for run in (program, loaded):
        assert kept(lambda run=run: run(x=X))
        assert not kept(lambda run=run: run(x=X))
        assert np.array_equal(run(x=X).numpy(), plain)
    assert not kept(lambda: infer(layer))  # it is the copy that `program` made


def test_a_training_program_makes_none(layer):
    def step(x):
        loss = layer(x).sum()
        ops.sgd_step(layer.bias, plm.grad(loss, [layer.bias])[0], lr=0.1)
        return loss

    program = plm.trace(step, dict(layer.named_parameters()), x=plm.spec("float32", "N", K))
    assert not kept(lambda: program(x=X))
    assert np.array_equal(infer(layer), expected(layer))
