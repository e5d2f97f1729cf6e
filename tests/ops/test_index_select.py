import numpy as np
from optest import OpSpec
from plmcore import ops


def index(shape, n, dtype=np.int64):
    return np.random.default_rng(sum(shape)).integers(0, n, shape).astype(dtype)


spec = OpSpec(
    op=ops.index_select,
    ref=lambda x, index, axis=0: np.take(x, index, axis),
    cases=[
        dict(x=(5, 4), index=index((3, 2), 5)),
        dict(x=(7, 4), index=index((6, 5), 7)),
        dict(x=(3, 6, 5), index=index((9,), 6), axis=1),
        dict(x=(37, 769), index=index((200,), 37, np.int32)),
        dict(x=(5, 40), index=index((3, 7), 40), axis=-1),
        dict(x=(50, 1100), index=np.array([3] * 90)),
        dict(x=(5, 4), index=np.array(2)),
        dict(x=(5, 4), index=index((0,), 5)),
        dict(x=(5, 0), index=index((3,), 5)),
        dict(x=np.arange(10).reshape(5, 2), index=index((3,), 5)),
        dict(x=np.eye(5) > 0, index=index((3,), 5), axis=1),
    ],
    dims={"x": "N 4", "index": "B T"},
    errors=[
        (
            dict(x=(4, 3), index=np.array([[0, 1], [2, -1]])),
            r"index_select: index -1 at position \[1, 1\] is out of range for an axis of size 4",
            IndexError,
        ),
        (dict(x=(4, 3), index=np.array([1, 4, 5])), r"index_select: index 4 at position \[1\]", IndexError),
        (dict(x=(4, 3), index=np.array([2**31])), r"index 2147483648 at position \[0\]", IndexError),
        (
            dict(x=(4, 3), index=np.array([2**63 - 1])),
            r"index 9223372036854775807 at position \[0\]",
            IndexError,
        ),
        (
            dict(x=(0, 3), index=np.array(0)),
            r"index 0 at position \[\] is out of range for an axis of size 0",
            IndexError,
        ),
        (dict(x=(4, 3), index=(2,)), r"index_select: indices must be int64 or int32", TypeError),
        (
            dict(x=(4, 3), index=np.array([1]), axis=2),
            r"index_select: axis 2 is out of range for 2 axes",
            IndexError,
        ),
    ],
    bench=dict(x=(5000, 768), index=index((4096,), 5000)),
    torch=lambda t, x, index: t.index_select(x, 0, index),
)
test_all = spec.tests()
