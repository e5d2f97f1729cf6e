import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.rng_advance,
    ref=lambda state, by: state + np.array([0, by]),
    cases=[
        dict(state=np.array([3, 0]), by=5),
        dict(state=np.array([-1, 1 << 40]), by=0),
        dict(state=np.array([7, 9]), by=1 << 33),
    ],
    errors=[
        (dict(state=np.array([1, 2, 3]), by=1), r"the random state must be int64\[2\], got int64\[3\]"),
        (
            dict(state=np.array([1, 2], np.int32), by=1),
            r"the random state must be int64\[2\], got int32\[2\]",
        ),
    ],
    bench=dict(state=np.array([3, 0]), by=5),
)
test_all = spec.tests()
