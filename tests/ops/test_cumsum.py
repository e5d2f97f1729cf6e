import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.cumsum,
    ref=lambda x, axis: np.cumsum(x, axis),
    cases=[
        dict(x=(2, 3, 8), axis=1),
        dict(x=(5, 4, 8), axis=1),
        dict(x=(5, 769), axis=-1),
        dict(x=(37, 3, 5), axis=0),
        dict(x=(3, 300), axis=0),
        dict(x=(0, 5), axis=1),
        dict(x=(5, 0), axis=1),
        dict(x=np.arange(6).reshape(2, 3), axis=1),
        dict(x=np.arange(6, dtype=np.int32).reshape(2, 3), axis=0),
    ],
    dims={"x": "B T 8"},
    errors=[
        (dict(x=(2, 3), axis=2), r"cumsum: axis 2 is out of range for 2 axes", IndexError),
        (
            dict(x=np.ones(3, bool), axis=0),
            r"cumsum: needs a float dtype, int64 or int32, got bool\[3\]",
            TypeError,
        ),
    ],
    bench=dict(x=(4096, 768), axis=-1),
    torch=lambda t, x, axis: x.cumsum(axis),
)
test_all = spec.tests()
