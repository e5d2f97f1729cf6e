import numpy as np
from optest import OpSpec
from plmcore import ops


def layer_norm(x, gamma, beta, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gamma + beta


spec = OpSpec(
    op=ops.layer_norm,
    ref=layer_norm,
    cases=[
        dict(x=(2, 3, 8), gamma=(8,), beta=(8,), eps=1e-5),
        dict(x=(5, 1, 8), gamma=(8,), beta=(8,), eps=1e-5),
        dict(x=(5, 769), gamma=(769,), beta=(769,), eps=1e-12),
        dict(x=(37, 37), gamma=(37,), beta=(37,), eps=0.5),
        dict(x=(3,), gamma=(3,), beta=(3,), eps=1e-5),
        dict(x=(0, 8), gamma=(8,), beta=(8,), eps=1e-5),
        dict(x=(70, 3, 8), gamma=(8,), beta=(8,), eps=1e-5),
    ],
    dims={"x": "B T 8"},
    errors=[
        (dict(x=(2, 6), gamma=(5,), beta=(6,), eps=1e-5), r"gamma and beta must be \[6\]"),
        (dict(x=(), gamma=(5,), beta=(5,), eps=1e-5), r"x must have at least one axis"),
        (
            dict(x=(2, 6), gamma=np.ones(6, int), beta=(6,), eps=1e-5),
            r"needs a float dtype, got int64\[6\]",
            TypeError,
        ),
    ],
    bench=dict(x=(4096, 768), gamma=(768,), beta=(768,), eps=1e-5),
    torch=lambda t, x, gamma, beta, eps: t.nn.functional.layer_norm(x, gamma.shape, gamma, beta, eps),
)
test_all = spec.tests()
