import numpy as np
from optest import OpSpec
from plmcore import ops


def rel_shift(x, S):
    T, L = x.shape[-2:]
    y = np.zeros_like(x, shape=(*x.shape[:-1], S))
    for i in range(T):
        moved = x[..., i, T - 1 - i :][..., :S]
        y[..., i, : moved.shape[-1]] = moved
    return y


spec = OpSpec(
    op=ops.rel_shift,
    ref=rel_shift,
    cases=[
        dict(x=(2, 3, 4, 9), S=9),
        dict(x=(1, 2, 7, 11), S=11),
        dict(x=(2, 3, 5, 13), S=9),  # also the distances to later keys
        dict(x=(3, 37, 37), S=37),
        dict(x=(33, 40), S=50),
        dict(x=(9, 4), S=4),
        dict(x=(2, 0, 4), S=4),
        dict(x=(2, 3, 0), S=4),
        dict(x=(2, 3, 4), S=0),
        dict(x=(64, 700), S=700),
    ],
    dims={"x": "B H T L", "S": "L"},
    errors=[
        (dict(x=(4,), S=4), r"x must be \[\.\.\., T, L\], got float32\[4\]"),
        (dict(x=np.ones((3, 4), int), S=4), r"needs a float dtype, got int64", TypeError),
    ],
    bench=dict(x=(4, 12, 512, 512), S=512),
)
test_all = spec.tests()


def test_it_is_the_view_trick_of_transformer_xl():
    x = np.random.default_rng(0).standard_normal((2, 5, 9)).astype(np.float32)
    T, L = x.shape[1:]
    trick = np.concatenate([np.zeros((2, T, 1)), x], -1).reshape(2, L + 1, T)[:, 1:].reshape(2, T, L)
    # The trick leaves other rows' values where no query looks.
    seen = np.arange(L) <= np.arange(T)[:, None] + L - T
    assert np.array_equal(np.where(seen, ops.rel_shift(x, L).numpy(), 0), np.where(seen, trick, 0))


def test_it_is_the_reshape_of_xlnet():
    x = np.random.default_rng(0).standard_normal((5, 9 + 5)).astype(np.float32)  # distances 9 ... -4
    expected = x.reshape(14, 5)[1:].reshape(5, 13)[:, :9]
    assert np.array_equal(ops.rel_shift(np.ascontiguousarray(x[:, 1:]), 9).numpy(), expected)
