import numpy as np
from optest import OpSpec
from plmcore import ops


def exp(x):
    with np.errstate(all="ignore"):
        return np.exp(x)


spec = OpSpec(
    op=ops.exp,
    ref=exp,
    cases=[
        dict(x=(2, 3, 8)),
        dict(x=(5, 1, 8)),
        dict(x=(3, 769)),
        dict(x=()),
        dict(x=(70001,)),
        dict(x=(0, 8)),
    ],
    dims={"x": "B T 8"},
    errors=[(dict(x=np.arange(3)), r"exp: needs a float dtype, got int64\[3\]", TypeError)],
    bench=dict(x=(4096, 768)),
    torch=lambda t, x: t.exp(x),
)
limits = OpSpec(
    op=ops.exp,
    ref=exp,
    cases=[dict(x=np.array([-200, -104, -88, 0, 88.7, 89, np.inf, -np.inf, np.nan, 1e-40], float))],
    grad=(),
)
test_all = spec.tests()
test_limits = limits.tests()
