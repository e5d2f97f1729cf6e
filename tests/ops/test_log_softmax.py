import numpy as np
from optest import OpSpec
from plmcore import ops


def log_softmax(x):
    if not x.size:
        return x
    x = x - np.asarray(x).max(-1, keepdims=True, initial=-np.inf)  # no gradient goes through the largest
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


spec = OpSpec(
    op=ops.log_softmax,
    ref=log_softmax,
    cases=[
        dict(x=(2, 3, 8)),
        dict(x=(5, 1, 8)),
        dict(x=(5, 769)),
        dict(x=(37, 37)),
        dict(x=(3, 5003)),
        dict(x=(3,)),
        dict(x=(4, 1)),
        dict(x=(0, 8)),
        dict(x=(3, 0)),
    ],
    dims={"x": "B T 8"},
    errors=[
        (dict(x=()), r"log_softmax: x must have at least one axis"),
        (dict(x=np.arange(3)), r"log_softmax: needs a float dtype, got int64\[3\]", TypeError),
    ],
    grad_cancels=8,  # p is exp(y), and half a unit of a y below 16 is 8 units of p
    bench=[dict(x=(4096, 512)), dict(x=(64 * 12 * 128, 128)), dict(x=(512, 30522))],
    torch=lambda t, x: t.log_softmax(x, -1),
)


def limit(x):
    with np.errstate(all="ignore"):
        return log_softmax(x)


limits = OpSpec(
    op=ops.log_softmax,
    ref=limit,
    cases=[
        dict(
            x=np.array(
                [
                    [1e4, 0, -1e4],
                    [-np.inf, 0, 1],
                    [1e4, 1e4, 1e4],
                    [np.nan, 0, 1],
                    [np.inf, 0, 1],
                    [-np.inf, -np.inf, -np.inf],
                ]
            )
        )
    ],
    grad=(),
)
test_all = spec.tests()
test_limits = limits.tests()
