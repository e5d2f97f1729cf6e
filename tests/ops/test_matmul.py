import numpy as np
from optest import OpSpec
from plmcore import ops


def ref(a, b, transpose_a=False, transpose_b=False):
    return np.matmul(
        np.swapaxes(a, -1, -2) if transpose_a else a, np.swapaxes(b, -1, -2) if transpose_b else b
    )


spec = OpSpec(
    op=ops.matmul,
    ref=ref,
    cases=[
        dict(a=(3, 4), b=(4, 5)),
        dict(a=(9, 4), b=(4, 5)),
        dict(a=(2, 4, 3), b=(2, 4, 5), transpose_a=True),
        dict(a=(7, 9), b=(5, 9), transpose_b=True),
        dict(a=(2, 1, 6, 7), b=(3, 8, 6), transpose_a=True, transpose_b=True),
        dict(a=(5, 1, 13, 37), b=(2, 37, 33)),
        dict(a=(401, 389), b=(389, 403)),
        dict(a=(0, 4), b=(4, 5)),
        dict(a=(3, 0), b=(0, 5)),
        dict(a=(2, 3, 4), b=(2, 4, 0)),
    ],
    dims={"a": "M 4", "b": "4 5"},
    errors=[
        (dict(a=(3, 4), b=(5, 4)), r"the summed axes must agree, got 4 and 5"),
        (dict(a=(4,), b=(4, 2)), r"both inputs need at least two axes"),
        (dict(a=(2, 3, 4), b=(3, 4, 5)), r"do not broadcast"),
    ],
    bench=dict(a=(96, 128, 64), b=(96, 64, 128)),
    torch=lambda t, a, b: t.matmul(a, b),
)
test_all = spec.tests()
