import numpy as np
from optest import OpSpec
from plmcore import ops

# Away from 0, where the quotient and its slope have no bound.
away = {"b": lambda rng, shape: rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 2, shape)}

spec = OpSpec(
    op=ops.div,
    ref=lambda a, b: a / b,
    cases=[
        dict(a=(2, 3, 8), b=(2, 3, 8)),
        dict(a=(7, 1, 8), b=(7, 1, 8)),
        dict(a=(5, 769), b=(769,)),
        dict(a=(4, 1, 37), b=(3, 1)),
        dict(a=(), b=(2, 3)),
        dict(a=(3, 70001), b=(3, 1)),
        dict(a=(0, 8), b=(1, 8)),
    ],
    sample=away,
    dims={"a": "B T 8", "b": "B T 8"},
    errors=[
        (dict(a=(2, 3), b=(2, 4)), r"div: shapes \[2, 3\] and \[2, 4\] do not broadcast"),
        (dict(a=np.ones(2, int), b=np.ones(2, int)), r"div: needs a float dtype, got int64\[2\]", TypeError),
    ],
    sums_in_order=True,  # 16,384 values in the lanes of a vector, then in double
    bench=dict(a=(4096, 768), b=(4096, 768)),
    torch=lambda t, a, b: a / b,
)


def divide(a, b):
    with np.errstate(all="ignore"):
        return a / b


limits = OpSpec(
    op=ops.div,
    ref=divide,
    cases=[dict(a=np.array([1.0, -1.0, 0.0, np.inf, 1.0]), b=np.array([0.0, 0.0, 0.0, np.inf, np.inf]))],
    grad=(),
)
test_all = spec.tests()
test_limits = limits.tests()
