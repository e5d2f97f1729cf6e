import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.add,
    ref=lambda a, b: a + b,
    cases=[
        dict(a=(2, 3, 8), b=(2, 3, 8)),
        dict(a=(5, 769), b=(769,)),
        dict(a=(4, 1, 37), b=(3, 1)),
        dict(a=(), b=(2, 3)),
        dict(a=(7, 3, 8), b=(7, 3, 8)),
        dict(a=(0, 8), b=(1, 8)),
        dict(a=(3, 70001), b=(3, 1)),
        dict(a=np.arange(6).reshape(2, 3), b=np.array([10, -20, 30])),
        dict(a=np.arange(6, dtype=np.int32), b=np.array(3, np.int32)),
    ],
    dims={"a": "B T 8", "b": "B T 8"},
    errors=[
        (dict(a=(2, 3), b=(2, 4)), r"add: shapes \[2, 3\] and \[2, 4\] do not broadcast: axis -1 is 3 and 4"),
        (
            dict(a=(2, 3), b=np.zeros((2, 3), np.float64)),
            r"add: inputs must have one dtype, got float32\[2, 3\] and float64\[2, 3\]",
            TypeError,
        ),
        (dict(a=np.ones(2, bool), b=np.ones(2, bool)), r"add: not defined on bool"),
    ],
    sums_in_order=True,  # 16,384 values in the lanes of a vector, then in double
    bench=dict(a=(4096, 768), b=(4096, 768)),
    torch=lambda t, a, b: a + b,
)
test_all = spec.tests()
