import numpy as np
from optest import OpSpec
from plmcore import ops


def abs(x):
    with np.errstate(all="ignore"):
        return np.abs(x)


spec = OpSpec(
    op=ops.abs,
    ref=abs,
    cases=[
        dict(x=(2, 3, 8)),
        dict(x=(5, 1, 8)),
        dict(x=(3, 769)),
        dict(x=()),
        dict(x=(70001,)),
        dict(x=(0, 8)),
    ],
    dims={"x": "B T 8"},
    errors=[(dict(x=np.arange(3)), r"abs: needs a float dtype, got int64\[3\]", TypeError)],
    bench=dict(x=(4096, 768)),
    torch=lambda t, x: t.abs(x),
)
limits = OpSpec(
    op=ops.abs, ref=abs, cases=[dict(x=np.array([0, -0.0, -1, np.inf, -np.inf, np.nan], float))], grad=()
)
test_all = spec.tests()
test_limits = limits.tests()
