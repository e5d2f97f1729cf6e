import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.sum,
    ref=lambda x, axes, keepdims: np.sum(x, axis=None if axes is None else tuple(axes), keepdims=keepdims),
    cases=[
        dict(x=(2, 3, 8), axes=[-1], keepdims=False),
        dict(x=(5, 4, 8), axes=[-1], keepdims=False),
        dict(x=(2, 3, 8), axes=[0, 1], keepdims=True),
        dict(x=(7, 1, 8), axes=[0, 1], keepdims=True),
        dict(x=(5, 769), axes=[1], keepdims=False),
        dict(x=(300, 769), axes=[0], keepdims=False),
        dict(x=(37, 3, 1100), axes=[1], keepdims=False),
        dict(x=(3, 4, 5, 6), axes=[0, 2], keepdims=False),
        dict(x=(3, 4, 5, 6), axes=[1, 3], keepdims=True),
        dict(x=(3, 1, 5, 1), axes=[1], keepdims=False),
        dict(x=(40003,), axes=None, keepdims=False),
        dict(x=(2, 40003), axes=[1], keepdims=False),
        dict(x=(70, 3, 33), axes=[0, 2], keepdims=False),
        dict(x=(), axes=None, keepdims=False),
        dict(x=(0, 5), axes=[1], keepdims=False),
        dict(x=(0, 5), axes=[0], keepdims=True),
        dict(x=np.arange(24).reshape(2, 3, 4), axes=[1], keepdims=False),
        dict(x=np.arange(24, dtype=np.int32).reshape(2, 3, 4), axes=[-1], keepdims=False),
        dict(x=np.arange(24, dtype=np.int8).reshape(2, 3, 4), axes=None, keepdims=False),
        dict(x=np.arange(24).reshape(2, 3, 4) % 3 == 0, axes=[0, 2], keepdims=False),
        dict(x=np.zeros((2, 0), int), axes=[1], keepdims=False),
    ],
    dims={"x": "B T 8"},
    errors=[
        (dict(x=(2, 3), axes=[2], keepdims=False), r"sum: axis 2 is out of range for 2 axes", IndexError),
        (dict(x=(2, 3), axes=[0, -2], keepdims=False), r"sum: axis -2 is listed twice"),
    ],
    sums_in_order=True,  # 16,384 values in the lanes of a vector, then in double
    bench=[dict(x=(4096, 768), axes=axes, keepdims=False) for axes in ([1], [0], None)],
    torch=lambda t, x, axes, keepdims: x.sum() if axes is None else x.sum(axes),
)


def test_a_long_sum_keeps_its_digits():
    x = np.random.default_rng(0).random(3_000_001).astype(np.float32)
    for y in (ops.sum(x), ops.sum(x.reshape(-1, 1), 0)):
        assert abs(float(y) / x.astype(float).sum() - 1) < 1e-6


test_all = spec.tests()
