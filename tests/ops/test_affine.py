import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.affine,
    ref=lambda x, scale, shift: x * scale + shift,
    cases=[
        dict(x=(2, 3, 8), scale=-1.5, shift=0.25),
        dict(x=(5, 1, 8), scale=-1.5, shift=0.25),
        dict(x=(3, 769), scale=2.0, shift=0.0),
        dict(x=(), scale=0.5, shift=1.0),
        dict(x=(70001,), scale=-1.0, shift=3.0),
        dict(x=(0, 8), scale=2.0, shift=1.0),
        dict(x=np.arange(5), scale=-3, shift=7),
        dict(x=np.arange(5, dtype=np.int32), scale=1, shift=-2),
        dict(x=np.arange(5, dtype=np.int8), scale=2, shift=1),
    ],
    dims={"x": "B T 8"},
    errors=[
        (
            dict(x=np.arange(3), scale=0.5, shift=0.0),
            r"affine: scale and shift must be whole numbers for int64\[3\], got 0.5 and 0",
        ),
        (dict(x=np.ones(3, bool), scale=1.0, shift=0.0), r"affine: not defined on bool"),
    ],
    bench=dict(x=(4096, 768), scale=2.0, shift=1.0),
    torch=lambda t, x, scale, shift: x * scale + shift,
)
test_all = spec.tests()
