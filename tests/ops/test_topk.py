import numpy as np
from optest import OpSpec
from plmcore import ops


def topk(x, k):
    # NaN first, then descending; a stable sort keeps the first of equals first.
    order = np.argsort(np.where(np.isnan(x), -np.inf, -x), axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(x, order, -1), order


spec = OpSpec(
    op=ops.topk,
    ref=topk,
    cases=[
        dict(x=(2, 3, 8), k=3),
        dict(x=(5, 1, 8), k=3),
        dict(x=(5, 769), k=10),
        dict(x=(37, 37), k=37),
        dict(x=(7,), k=1),
        dict(x=(3, 8), k=0),
        dict(x=(0, 5), k=2),
    ],
    dims={"x": "B T 8"},
    errors=[
        (dict(x=(2, 3), k=4), r"topk: k must be at most the last axis of x, got 4; x is float32\[2, 3\]"),
        (dict(x=(), k=0), r"topk: x must have at least one axis"),
        (dict(x=np.arange(3), k=1), r"topk: needs a float dtype, got int64\[3\]", TypeError),
    ],
    bench=dict(x=(64, 50257), k=50),
    torch=lambda t, x, k: t.topk(x, k),
)
limits = OpSpec(
    op=ops.topk,
    ref=topk,
    cases=[
        dict(x=np.array([[1.0, np.nan, 3, np.nan, np.inf, 3], [-np.inf] * 6, [0.0, -0.0, 0, 0, 0, 0]]), k=4),
        dict(x=np.tile(np.arange(50.0) % 7, (2, 3)), k=45),
    ],
    grad=(),
)
test_all = spec.tests()
test_limits = limits.tests()
