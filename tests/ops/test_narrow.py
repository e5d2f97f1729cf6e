import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.narrow,
    ref=lambda x, start, length: x[start : start + length],
    cases=[
        dict(x=(5, 3), start=1, length=2),
        dict(x=(9, 3), start=1, length=2),
        dict(x=(4,), start=0, length=4),
        dict(x=(3, 37, 5), start=2, length=1),
        dict(x=(2, 769), start=2, length=0),
        dict(x=(0, 3), start=0, length=0),
        dict(x=np.arange(7, dtype=np.int32), start=3, length=4),
    ],
    dims={"x": "N 3"},
    errors=[
        (
            dict(x=(3, 2), start=2, length=2),
            r"narrow: the range \[2, 4\) is not inside an axis of size 3",
            IndexError,
        ),
        (dict(x=(), start=0, length=0), r"narrow: x must have at least one axis"),
    ],
)
test_all = spec.tests()


def test_shares_memory():
    x = ops.full([4, 2], 1.0)
    ops.narrow(x, 1, 2).numpy()[:] = 5
    assert x.numpy().tolist() == [[1, 1], [5, 5], [5, 5], [1, 1]]
