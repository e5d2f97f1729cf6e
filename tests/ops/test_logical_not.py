import numpy as np
from optest import OpSpec
from plmcore import ops


def bits(*shape):
    return np.random.default_rng(sum(shape)).random(shape) < 0.5


spec = OpSpec(
    op=ops.logical_not,
    ref=lambda a: ~a,
    cases=[
        dict(a=bits(2, 8)),
        dict(a=bits(5, 8)),
        dict(a=bits(3, 769)),
        dict(a=bits(0, 8)),
        dict(a=bits(70001)),
    ],
    dims={"a": "B 8"},
    errors=[(dict(a=(2,)), r"logical_not: the input must be bool, got float32\[2\]", TypeError)],
    bench=dict(a=bits(4096, 768)),
    torch=lambda t, a: t.logical_not(a),
)
test_all = spec.tests()
