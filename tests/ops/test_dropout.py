import numpy as np
import philox
import pytest
from optest import SEED, OpSpec
from plmcore import Tensor, _core, ops


def dropout(x, p, locked=False):
    if p == 0:
        return x
    shape = (x.shape[0], 1, x.shape[2]) if locked else x.shape
    keep = philox.halves(SEED, 0, int(np.prod(shape))).reshape(shape) >= round(p * 65536)
    return np.where(keep, x / (1 - p) if p < 1 else 0, 0)


spec = OpSpec(
    op=ops.dropout,
    ref=dropout,
    cases=[
        dict(x=(2, 3, 8), p=0.3),
        dict(x=(4, 1, 8), p=0.3),
        dict(x=(5, 769), p=0.5),
        dict(x=(), p=0.5),
        dict(x=(3, 37), p=0.0),
        dict(x=(3, 37), p=1.0),
        dict(x=(0, 8), p=0.1),
        dict(x=(2, 9, 37), p=0.5, locked=True),
        dict(x=(3, 2, 8), p=0.3, locked=True),
        dict(x=(2, 5, 8), p=0.3, locked=True),
        dict(x=(2, 0, 8), p=0.3, locked=True),
        dict(x=(70000,), p=0.1),
    ],
    dims={"x": "B T C"},
    errors=[
        (dict(x=(3, 4), p=1.5), r"dropout: p must be in \[0, 1\], got 1.5"),
        (dict(x=(3, 4), p=float("nan")), r"dropout: p must be in \[0, 1\]"),
        (dict(x=(3, 4), p=0.5, locked=True), r"the locked form needs x \[B, T, C\], got float32\[3, 4\]"),
        (dict(x=np.ones(3, int), p=0.5), r"dropout: needs a float dtype", TypeError),
    ],
    bench=dict(x=(4096, 768), p=0.1),
    torch=lambda t, x, p: t.nn.functional.dropout(x, p),
)
test_all = spec.tests()


def test_share_of_zeros():
    x = Tensor(np.ones((1000, 1000), np.float32))
    for p in (0.1, 0.5, 0.9):
        y = ops.dropout(x, p).numpy()
        assert abs((y == 0).mean() - p) < 4 * np.sqrt(p * (1 - p) / x.size)
        assert abs(y.mean() - 1) < 4 * np.sqrt(p / (1 - p) / x.size)


def test_dropped_elements_are_zero_whatever_they_were():
    _core.manual_seed(1)
    y = ops.dropout(Tensor(np.full(1000, np.inf, np.float32)), 0.5).numpy()
    assert set(np.unique(y)) == {0, np.inf}


@pytest.mark.parametrize("locked", [False, True])
def test_calls_draw_fresh_masks_and_a_seed_repeats_them(locked):
    x = Tensor(np.ones((4, 5, 64), np.float32))
    _core.manual_seed(3)
    a, b = ops.dropout(x, 0.5, locked).numpy(), ops.dropout(x, 0.5, locked).numpy()
    _core.manual_seed(3)
    again = ops.dropout(x, 0.5, locked).numpy()
    assert not np.array_equal(a, b)
    assert np.array_equal(a, again)
    if locked:
        assert np.array_equal(a, np.broadcast_to(a[:, :1], a.shape))


def test_a_replayed_program_draws_new_masks():
    tracer = _core.Tracer()
    x = tracer.input("x", [_core.Dim("N")], "float32")
    program = tracer.finish([], [ops.dropout(ops.dropout(x, 0.5), 0.5)])
    ones = Tensor(np.ones(1000, np.float32))
    _core.manual_seed(5)
    eager = [ops.dropout(ops.dropout(ones, 0.5), 0.5).numpy() for _ in range(2)]
    _core.manual_seed(5)
    for expected in eager:
        assert np.array_equal(program.run([ones])[0].numpy(), expected)
    assert _core.random_state() == [5, 4000]
