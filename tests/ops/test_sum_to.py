import numpy as np
from optest import OpSpec
from plmcore import ops


def sum_to(x, shape):
    lead = x.ndim - len(shape)
    y = x.sum(tuple(range(lead)))
    return y.sum(tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True).reshape(shape)


spec = OpSpec(
    op=ops.sum_to,
    ref=sum_to,
    cases=[
        dict(x=(2, 3, 8), shape=[8]),
        dict(x=(5, 4, 8), shape=[8]),
        dict(x=(37, 769), shape=[769]),
        dict(x=(1100, 13), shape=[13]),
        dict(x=(4, 3, 5), shape=[4, 1, 5]),
        dict(x=(4, 3, 5), shape=[3, 1]),
        dict(x=(4, 3, 5), shape=[]),
        dict(x=(4, 1, 5), shape=[4, 1, 1]),
        dict(x=(0, 5), shape=[5]),
        dict(x=(0, 5), shape=[1, 5]),
        dict(x=(3, 0), shape=[1, 0]),
        dict(x=np.arange(12).reshape(3, 4), shape=[4]),
        dict(x=np.arange(12, dtype=np.int32).reshape(3, 4), shape=[3, 1]),
    ],
    dims={"x": "B T 8"},
    errors=[
        (dict(x=(2, 3), shape=[4]), r"sum_to: shapes \[2, 3\] and \[4\] do not broadcast"),
        (dict(x=(3,), shape=[2, 3]), r"sum_to: \[2, 3\] does not broadcast to float32\[3\]"),
    ],
    sums_in_order=True,  # 16,384 values in the lanes of a vector, then in double
    bench=dict(x=(4096, 768), shape=[768]),
    torch=lambda t, x, shape: x.sum(0),
)
test_all = spec.tests()
