import numpy as np
from optest import OpSpec
from plmcore import ops


def bits(*shape):
    return np.random.default_rng(sum(shape)).random(shape) < 0.5


spec = OpSpec(
    op=ops.where,
    ref=lambda condition, a, b: np.where(condition, a, b),
    cases=[
        dict(condition=bits(2, 3, 8), a=(2, 3, 8), b=(2, 3, 8)),
        dict(condition=bits(5, 1, 8), a=(5, 1, 8), b=(5, 1, 8)),
        dict(condition=bits(5, 769), a=(769,), b=()),
        dict(condition=bits(5, 1), a=(1, 37), b=(5, 37)),
        dict(condition=bits(3, 1), a=(), b=(4, 3, 5)),
        dict(condition=bits(4), a=(), b=()),
        dict(condition=bits(0, 8), a=(1, 8), b=(0, 8)),
        dict(condition=bits(70001), a=(70001,), b=(1,)),
        dict(condition=bits(6), a=np.arange(6), b=-np.arange(6)),
        dict(condition=bits(6), a=np.arange(6, dtype=np.int8), b=np.array(7, np.int8)),
        dict(condition=bits(6), a=bits(6), b=~bits(6)),
    ],
    dims={"condition": "B T 8", "a": "B T 8", "b": "B T 8"},
    errors=[
        (
            dict(condition=np.ones(2), a=(2,), b=(2,)),
            r"where: the condition must be bool, got float64\[2\]",
            TypeError,
        ),
        (
            dict(condition=np.ones(2, bool), a=(2,), b=np.ones(2)),
            r"where: a and b must have one dtype",
            TypeError,
        ),
        (dict(condition=np.ones(3, bool), a=(2,), b=(2,)), r"where: shapes \[3\] and \[2\] do not broadcast"),
    ],
    sums_in_order=True,  # 16,384 values in the lanes of a vector, then in double
    bench=dict(condition=bits(4096, 768), a=(4096, 768), b=(4096, 768)),
    torch=lambda t, condition, a, b: t.where(condition, a, b),
)
nans = OpSpec(
    op=ops.where,
    ref=lambda condition, a, b: np.where(condition, a, b),
    cases=[
        dict(
            condition=np.array([True, False, False]),
            a=np.array([np.nan, 1.0, np.nan]),
            b=np.array([1.0, np.inf, 2.0]),
        )
    ],
    grad=(),
)
test_all = spec.tests()
test_nans = nans.tests()
