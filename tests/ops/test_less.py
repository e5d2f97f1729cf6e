import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.less,
    ref=lambda a, b: a < b,
    cases=[
        dict(a=(2, 3, 8), b=(2, 3, 8)),
        dict(a=(7, 1, 8), b=(7, 1, 8)),
        dict(a=(5, 769), b=(769,)),
        dict(a=(4, 1, 37), b=(3, 1)),
        dict(a=(), b=(2, 3)),
        dict(a=(3, 70001), b=(3, 1)),
        dict(a=(0, 8), b=(1, 8)),
        dict(
            a=np.array([1.0, np.nan, np.nan, np.inf, -np.inf, 0.0]),
            b=np.array([np.nan, 1.0, np.nan, np.inf, 5.0, -0.0]),
        ),
        dict(a=np.arange(6).reshape(2, 3), b=np.array([1, -20, 5])),
        dict(a=np.arange(6, dtype=np.int32), b=np.array(3, np.int32)),
        dict(a=np.arange(40, dtype=np.int8) % 7, b=np.arange(40, dtype=np.int8) % 5),
        dict(a=np.array([True, False, True]), b=np.array([True, True, False])),
        dict(a=np.array([1, 2, 3]), b=np.array(2)),
    ],
    dims={"a": "B T 8", "b": "B T 8"},
    errors=[
        (dict(a=(2, 3), b=(2, 4)), r"less: shapes \[2, 3\] and \[2, 4\] do not broadcast"),
        (
            dict(a=(3,), b=np.arange(3)),
            r"less: inputs must have one dtype, got float32\[3\] and int64\[3\]",
            TypeError,
        ),
    ],
    bench=dict(a=(4096, 768), b=(4096, 768)),
    torch=lambda t, a, b: t.lt(a, b),
)
test_all = spec.tests()
