import numpy as np
from optest import OpSpec
from plmcore import Tensor, ops


def clip_scale(norm, max_norm):
    return ops.clip_scale(ops.cast(norm, "float32"), max_norm)


spec = OpSpec(
    op=clip_scale,
    ref=lambda norm, max_norm: np.float64(1 if norm == 0 else min(1.0, max_norm / norm)),
    cases=[
        dict(norm=np.array(x), max_norm=m)
        for x, m in [(2.0, 1.0), (2.0, 4.0), (0.0, 1.0), (np.inf, 1.0), (1e-30, 0.5)]
    ],
    dtypes=("float32", "float64"),
    errors=[
        (dict(norm=(2,), max_norm=1.0), r"norm must be float32\[\], got float32\[2\]"),
        (dict(norm=(), max_norm=0.0), r"max_norm must be positive, got 0"),
    ],
    bench=dict(norm=np.array(2.0), max_norm=1.0),
)
test_all = spec.tests()


def test_nan_stays():
    assert np.isnan(ops.clip_scale(Tensor(np.float32("nan")), 1.0).item())
