import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.mul,
    ref=lambda a, b: a * b,
    cases=[
        dict(a=(2, 3, 8), b=(2, 3, 8)),
        dict(a=(5, 769), b=(769,)),
        dict(a=(4, 1, 37), b=(3, 1)),
        dict(a=(), b=(2, 3)),
        dict(a=(7, 1, 8), b=(7, 1, 8)),
        dict(a=(0, 8), b=(1, 8)),
        dict(a=np.arange(6).reshape(2, 3), b=np.array([10, -20, 30])),
    ],
    dims={"a": "B T 8", "b": "B T 8"},
    errors=[(dict(a=(2, 3), b=(4,)), r"mul: shapes \[2, 3\] and \[4\] do not broadcast")],
    sums_in_order=True,  # 16,384 values in the lanes of a vector, then in double
    bench=dict(a=(4096, 768), b=(4096, 768)),
    torch=lambda t, a, b: a * b,
)
test_all = spec.tests()
