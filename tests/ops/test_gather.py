import numpy as np
from optest import OpSpec
from plmcore import ops


def index(shape, n, dtype=np.int64):
    return np.random.default_rng(sum(shape)).integers(0, n, shape).astype(dtype)


def bad(value, dtype=np.int64):
    return np.array([[0, 1], [1, value]], dtype)


spec = OpSpec(
    op=ops.gather,
    ref=lambda x, index, axis: np.take_along_axis(x, index.astype(np.int64), axis),
    cases=[
        dict(x=(2, 5), index=index((2, 1), 5), axis=1),
        dict(x=(9, 7), index=index((9, 1), 7), axis=1),
        dict(x=(3, 5, 4), index=index((3, 8, 4), 5), axis=1),
        dict(x=(37, 769), index=index((37, 100), 769, np.int32), axis=-1),
        dict(x=(11, 33), index=index((200, 33), 11), axis=0),
        dict(x=(300, 200), index=index((300, 150), 200), axis=1),
        dict(x=(6,), index=index((0,), 6), axis=0),
        dict(x=(0, 4), index=index((0, 2), 4), axis=1),
        dict(x=np.arange(12).reshape(3, 4), index=index((3, 2), 4), axis=1),
    ],
    dims={"x": "B V", "index": "B 1"},
    errors=[
        (
            dict(x=(2, 3), index=bad(-1), axis=1),
            r"gather: index -1 at position \[1, 1\] is out of range for an axis of size 3",
            IndexError,
        ),
        (dict(x=(2, 3), index=bad(3), axis=1), r"index 3 at position \[1, 1\]", IndexError),
        (dict(x=(2, 3), index=bad(2**31), axis=1), r"index 2147483648 at position \[1, 1\]", IndexError),
        (dict(x=(2, 3), index=bad(2**63 - 1), axis=1), r"index 9223372036854775807 at", IndexError),
        (dict(x=(2, 3), index=bad(-1, np.int32), axis=1), r"index -1 at position \[1, 1\]", IndexError),
        (
            dict(x=(2, 3), index=np.zeros((3, 1), np.int64), axis=1),
            r"gather: index must have the sizes of x but along axis 1, got int64\[3, 1\]",
        ),
        (
            dict(x=(2, 3), index=(2, 3), axis=1),
            r"gather: indices must be int64 or int32, got float32\[2, 3\]",
            TypeError,
        ),
    ],
    bench=dict(x=(4096, 1024), index=index((4096, 64), 1024), axis=1),
    torch=lambda t, x, index, axis: t.gather(x, axis, index),
)
test_all = spec.tests()
