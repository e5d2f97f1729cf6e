import math

import numpy as np
import philox
from optest import SEED, OpSpec
from plmcore import _core, ops

spec = OpSpec(
    op=ops.normal,
    ref=lambda shape, mean, std, dtype: (
        mean + std * philox.normal(SEED, 0, int(np.prod(shape))).reshape(shape)
    ),
    cases=[
        dict(shape=[2, 3], mean=0.0, std=1.0, dtype="float32"),
        dict(shape=[7, 30], mean=0.0, std=1.0, dtype="float32"),
        dict(shape=[769], mean=-2.0, std=3.0, dtype="float64"),
        dict(shape=[0, 4], mean=0.0, std=1.0, dtype="float32"),
        dict(shape=[], mean=1.0, std=0.0, dtype="float32"),
        dict(shape=[300], mean=0.0, std=0.02, dtype="bfloat16"),
        dict(shape=[300], mean=0.0, std=0.02, dtype="float16"),
        dict(shape=[70001], mean=0.0, std=1.0, dtype="float32"),
    ],
    errors=[
        (dict(shape=[2], mean=0.0, std=-1.0, dtype="float32"), r"normal: std must not be negative, got -1"),
        (
            dict(shape=[2], mean=0.0, std=1.0, dtype="int32"),
            r"normal: needs a float dtype, got int32",
            TypeError,
        ),
    ],
    computes_in={"float64": "float32"},
    bench=dict(shape=[4096, 768], mean=0.0, std=1.0, dtype="float32"),
    torch=lambda t, shape, mean, std, dtype: t.empty(shape).normal_(mean, std),
)
test_all = spec.tests()


def test_statistics():
    _core.manual_seed(0)
    z = ops.normal([1 << 20]).numpy().astype(np.float64)
    n = z.size
    assert abs(z.mean()) < 4 / np.sqrt(n)
    assert abs(z.var() - 1) < 4 * np.sqrt(2 / n)
    assert abs((z**3).mean()) < 4 * np.sqrt(15 / n)
    assert abs((z**4).mean() - 3) < 4 * np.sqrt(96 / n)
    z.sort()
    cdf = np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in z[:: n // 4096]])
    # Kolmogorov-Smirnov, one in a thousand.
    assert np.abs(cdf - np.arange(0, n, n // 4096) / n).max() < 1.95 / np.sqrt(n)
