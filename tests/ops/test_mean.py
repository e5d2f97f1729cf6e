import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.mean,
    ref=lambda x, axes, keepdims: np.mean(x, axis=None if axes is None else tuple(axes), keepdims=keepdims),
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
    ],
    dims={"x": "B T 8"},
    errors=[
        (dict(x=(2, 3), axes=[2], keepdims=False), r"mean: axis 2 is out of range for 2 axes", IndexError),
        (dict(x=(2, 3), axes=[0, -2], keepdims=False), r"mean: axis -2 is listed twice"),
        (
            dict(x=np.arange(3), axes=None, keepdims=False),
            r"mean: needs a float dtype, got int64\[3\]",
            TypeError,
        ),
    ],
    sums_in_order=True,  # 16,384 values in the lanes of a vector, then in double
    bench=[dict(x=(4096, 768), axes=axes, keepdims=False) for axes in ([1], [0], None)],
    torch=lambda t, x, axes, keepdims: x.mean() if axes is None else x.mean(axes),
)


def test_a_long_mean_keeps_its_digits():
    x = np.random.default_rng(0).random(3_000_001).astype(np.float32)
    for y in (ops.mean(x), ops.mean(x.reshape(-1, 1), 0)):
        assert abs(float(y) / x.astype(float).mean() - 1) < 1e-6


def test_mean_of_nothing():
    assert np.isnan(ops.mean(np.zeros((0, 3), np.float32), 0).numpy()).all()


test_all = spec.tests()
