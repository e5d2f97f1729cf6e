import numpy as np
from optest import OpSpec
from plmcore import ops


def sigmoid(x):
    with np.errstate(all="ignore"):
        return 1 / (1 + np.exp(-x))


spec = OpSpec(
    op=ops.sigmoid,
    ref=sigmoid,
    cases=[
        dict(x=(2, 3, 8)),
        dict(x=(5, 1, 8)),
        dict(x=(3, 769)),
        dict(x=()),
        dict(x=(70001,)),
        dict(x=(0, 8)),
    ],
    dims={"x": "B T 8"},
    errors=[(dict(x=np.arange(3)), r"sigmoid: needs a float dtype, got int64\[3\]", TypeError)],
    grad_cancels=1,  # the slope is made of the saved y, which has rounded 1 - |y|
    bench=dict(x=(4096, 768)),
    torch=lambda t, x: t.sigmoid(x),
)
limits = OpSpec(
    op=ops.sigmoid,
    ref=sigmoid,
    cases=[dict(x=np.array([0, 30, -30, -60, np.inf, -np.inf, np.nan], float))],
    grad=(),
)
test_all = spec.tests()
test_limits = limits.tests()
