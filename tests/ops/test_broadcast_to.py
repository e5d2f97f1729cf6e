import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.broadcast_to,
    ref=lambda x, shape: np.broadcast_to(x, shape),
    cases=[
        dict(x=(3, 1, 8), shape=[3, 4, 8]),
        dict(x=(5, 1, 8), shape=[5, 4, 8]),
        dict(x=(769,), shape=[3, 769]),
        dict(x=(3, 1), shape=[2, 3, 37]),
        dict(x=(), shape=[2, 2]),
        dict(x=(1, 5), shape=[0, 5]),
        dict(x=(3, 1), shape=[3, 0]),
        dict(x=np.array([[True], [False]]), shape=[2, 3]),
        dict(x=np.array([1, 2], np.int8), shape=[2, 2]),
    ],
    dims={"x": "B 1 8", "shape": "B 4 8"},
    errors=[
        (dict(x=(2, 3), shape=[2, 4]), r"broadcast_to: shapes .* do not broadcast"),
        (dict(x=(2, 3), shape=[3]), r"broadcast_to: float32\[2, 3\] does not broadcast to \[3\]"),
    ],
    bench=dict(x=(768,), shape=[4096, 768]),
    torch=lambda t, x, shape: x.broadcast_to(shape).contiguous(),
)
test_all = spec.tests()
