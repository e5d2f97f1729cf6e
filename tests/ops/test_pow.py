import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.pow,
    ref=lambda a, b: a**b,
    cases=[
        dict(a=(2, 3, 8), b=(2, 3, 8)),
        dict(a=(7, 1, 8), b=(7, 1, 8)),
        dict(a=(5, 769), b=(769,)),
        dict(a=(4, 1, 37), b=(3, 1)),
        dict(a=(), b=(2, 3)),
        dict(a=(3, 70001), b=(3, 1)),
        dict(a=(0, 8), b=(1, 8)),
    ],
    sample={
        "a": lambda rng, shape: rng.uniform(0.3, 2, shape),
        "b": lambda rng, shape: rng.uniform(-2, 2, shape),
    },
    dims={"a": "B T 8", "b": "B T 8"},
    errors=[
        (dict(a=(2, 3), b=(2, 4)), r"pow: shapes \[2, 3\] and \[2, 4\] do not broadcast"),
        (dict(a=np.ones(2, int), b=np.ones(2, int)), r"pow: needs a float dtype, got int64\[2\]", TypeError),
    ],
    sums_in_order=True,  # 16,384 values in the lanes of a vector, then in double
    bench=dict(a=(4096, 768), b=np.array(3.0)),
    torch=lambda t, a, b: a**b,
)


def power(a, b):
    with np.errstate(all="ignore"):
        return a**b


limits = OpSpec(
    op=ops.pow,
    ref=power,
    cases=[
        dict(
            a=np.array([0.0, 0.0, -2.0, -2.0, np.inf, 0.0, np.nan, 1.0]),
            b=np.array([0.0, 2.0, 3.0, 0.5, -1.0, -1.0, 0.0, np.nan]),
        ),
        dict(a=np.array([-1.5, 0.5, 2.0]), b=np.array(2.0)),
    ],
    grad=(),
)
# A base of 0 and an exponent of 0 have finite slopes; a difference quotient cannot reach them from both
# sides.
edges = OpSpec(
    op=ops.pow,
    ref=power,
    cases=[
        dict(a=np.array([-1.5, 0.0, 2.0]), b=np.array(2.0)),
        dict(a=np.array([-1.5, 0.0, 2.0]), b=np.array(0.0)),
    ],
    grad=("a",),
)
test_all = spec.tests()
test_limits = limits.tests()
test_edges = edges.tests()
