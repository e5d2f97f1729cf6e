import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.pad,
    ref=lambda x, before, after, value=0.0: (
        np.pad(x, list(zip(before, after)), constant_values=value) if x.ndim else x
    ),
    cases=[
        dict(x=(2, 5, 4), before=[0, 1, 0], after=[0, 2, 0], value=-1.5),
        dict(x=(3, 9, 4), before=[0, 1, 0], after=[0, 2, 0], value=-1.5),
        dict(x=(37, 769), before=[1, 0], after=[0, 3]),
        dict(x=(2, 3, 4, 5), before=[1, 2, 0, 1], after=[0, 1, 3, 0], value=2.0),
        dict(x=(64, 700), before=[3, 0], after=[0, 0]),
        dict(x=(4,), before=[0], after=[0]),
        dict(x=(), before=[], after=[]),
        dict(x=(0, 3), before=[1, 0], after=[1, 1], value=7.0),
        dict(x=np.arange(6).reshape(2, 3), before=[0, 1], after=[1, 0], value=-100),
        dict(x=np.eye(3) > 0, before=[1, 0], after=[0, 1], value=1),
    ],
    dims={"x": "B T 4"},
    errors=[
        (
            dict(x=(2, 3), before=[1], after=[1, 1]),
            r"pad: before and after must have one size for each axis of float32\[2, 3\], got \[1\] and "
            r"\[1, 1\]",
        )
    ],
    bench=dict(x=(16, 500, 768), before=[0, 0, 0], after=[0, 12, 0]),
    torch=lambda t, x, before, after: t.nn.functional.pad(x, (0, 0, 0, 12)),
)
test_all = spec.tests()
