import numpy as np
from optest import OpSpec
from plmcore import ops


def bits(*shape):
    return np.random.default_rng(sum(shape)).random(shape) < 0.5


spec = OpSpec(
    op=ops.masked_fill,
    ref=lambda x, mask, value: np.where(mask, np.asarray(value, x.dtype), x),
    cases=[
        dict(x=(2, 3, 8), mask=bits(2, 3, 8), value=-1e4),
        dict(x=(5, 1, 8), mask=bits(5, 1, 8), value=-1e4),
        dict(x=(3, 5, 769), mask=bits(5, 769), value=0.5),
        dict(x=(3, 5, 37), mask=bits(5, 1), value=-np.inf),
        dict(x=(4, 3), mask=np.array(True), value=2.0),
        dict(x=(0, 8), mask=bits(1, 8), value=2.0),
        dict(x=(70001,), mask=bits(70001), value=2.0),
        dict(x=np.arange(6), mask=bits(6), value=-1),
        dict(x=np.arange(6, dtype=np.uint8), mask=bits(6), value=9),
        dict(x=bits(6), mask=bits(1), value=1),
    ],
    dims={"x": "B T 8", "mask": "B T 8"},
    errors=[
        (
            dict(x=(2, 3), mask=np.ones((2, 3)), value=0.0),
            r"masked_fill: the mask must be bool, got float64\[2, 3\]",
            TypeError,
        ),
        (
            dict(x=(3,), mask=np.ones((2, 3), bool), value=0.0),
            r"masked_fill: the mask bool\[2, 3\] does not broadcast to x, float32\[3\]",
        ),
    ],
    bench=dict(x=(4096, 768), mask=bits(4096, 768), value=-1e4),
    torch=lambda t, x, mask, value: x.masked_fill(mask, value),
)
test_all = spec.tests()
