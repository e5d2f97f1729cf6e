import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.rms_norm,
    ref=lambda x, gamma, eps: x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gamma,
    cases=[
        dict(x=(2, 3, 8), gamma=(8,), eps=1e-6),
        dict(x=(5, 1, 8), gamma=(8,), eps=1e-6),
        dict(x=(5, 769), gamma=(769,), eps=1e-12),
        dict(x=(37, 37), gamma=(37,), eps=0.5),
        dict(x=(3,), gamma=(3,), eps=1e-6),
        dict(x=(0, 8), gamma=(8,), eps=1e-6),
        dict(x=(70, 3, 8), gamma=(8,), eps=1e-6),
    ],
    dims={"x": "B T 8"},
    errors=[
        (dict(x=(2, 6), gamma=(5,), eps=1e-5), r"rms_norm: gamma must be \[6\] \(last dim of x\), got \[5\]"),
        (dict(x=(), gamma=(5,), eps=1e-5), r"x must have at least one axis"),
        (dict(x=(2, 6), gamma=np.ones(6, int), eps=1e-5), r"needs a float dtype, got int64\[6\]", TypeError),
    ],
    bench=dict(x=(4096, 768), gamma=(768,), eps=1e-6),
    torch=lambda t, x, gamma, eps: t.nn.functional.rms_norm(x, gamma.shape, gamma, eps),
)
test_all = spec.tests()
