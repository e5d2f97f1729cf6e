import numpy as np
from optest import OpSpec
from plmcore import ops


def bits(*shape):
    return np.random.default_rng(sum(shape)).random(shape) < 0.5


spec = OpSpec(
    op=ops.logical_and,
    ref=lambda a, b: a & b,
    cases=[
        dict(a=bits(2, 8), b=bits(2, 8)),
        dict(a=bits(5, 8), b=bits(5, 8)),
        dict(a=bits(5, 769), b=bits(769)),
        dict(a=bits(3, 1), b=bits(4, 1, 37)),
        dict(a=bits(0, 8), b=bits(1, 8)),
    ],
    dims={"a": "B 8", "b": "B 8"},
    errors=[
        (
            dict(a=(2,), b=np.ones(2, bool)),
            r"logical_and: inputs must be bool, got float32\[2\] and bool\[2\]",
            TypeError,
        )
    ],
    bench=dict(a=bits(4096, 768), b=bits(4096, 768)),
    torch=lambda t, a, b: t.logical_and(a, b),
)
test_all = spec.tests()
