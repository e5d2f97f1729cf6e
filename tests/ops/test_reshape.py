import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.reshape,
    ref=lambda x, shape: x.reshape(shape),
    cases=[
        dict(x=(2, 3, 8), shape=[6, 8]),
        dict(x=(5, 4, 8), shape=[20, 8]),
        dict(x=(37, 2), shape=[2, 37]),
        dict(x=(1,), shape=[]),
        dict(x=(), shape=[1, 1]),
        dict(x=(0, 3, 8), shape=[0, 8]),
        dict(x=np.arange(6), shape=[2, 3]),
        dict(x=np.array([True, False]), shape=[2, 1]),
    ],
    dims={"x": "B T 8", "shape": "B*T 8"},
    errors=[(dict(x=(2, 3), shape=[4]), r"reshape: float32\[2, 3\] cannot become \[4\]")],
)
test_all = spec.tests()
