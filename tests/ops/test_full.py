import numpy as np
from optest import OpSpec
from plmcore import ops


def full(shape, value, dtype):
    # NumPy keeps bfloat16 in another package; the value is exact in it.
    return np.full(shape, value, np.float64 if dtype in ("bfloat16", "float16") else dtype)


spec = OpSpec(
    op=ops.full,
    ref=full,
    cases=[
        dict(shape=[2, 3], value=0.5, dtype="float32"),
        dict(shape=[40000], value=-2.0, dtype="float64"),
        dict(shape=[], value=1.5, dtype="bfloat16"),
        dict(shape=[0, 4], value=1.5, dtype="float16"),
        dict(shape=[5], value=-7, dtype="int64"),
        dict(shape=[5], value=7, dtype="int32"),
        dict(shape=[5], value=-3, dtype="int8"),
        dict(shape=[5], value=200, dtype="uint8"),
        dict(shape=[3], value=1, dtype="bool"),
    ],
    errors=[
        (dict(shape=[1 << 40, 1 << 40], value=0.0, dtype="float32"), r"sizes are too large", ValueError),
        (dict(shape=[1 << 44], value=0.0, dtype="float32"), r"memory|bytes", MemoryError),
    ],
    bench=dict(shape=[4096, 768], value=1.0, dtype="float32"),
    torch=lambda t, shape, value, dtype: t.full(shape, value, dtype=getattr(t, dtype)),
)
test_all = spec.tests()
