import numpy as np
from optest import OpSpec
from plmcore import ops


def index(shape, n, dtype=np.int64):
    return np.random.default_rng(sum(shape)).integers(0, n, shape).astype(dtype)


def scatter_add(x, index, updates):
    y = x.copy()
    np.add.at(y, index, updates)
    return y


spec = OpSpec(
    op=ops.scatter_add,
    ref=scatter_add,
    cases=[
        dict(x=(5, 4), index=index((7,), 5), updates=(7, 4)),
        dict(x=(9, 4), index=index((3,), 9), updates=(3, 4)),
        dict(x=(37, 769), index=index((60,), 37, np.int32), updates=(60, 769)),
        dict(x=(6, 2, 5), index=index((4, 3), 6), updates=(4, 3, 2, 5)),
        dict(x=(50,), index=index((900,), 50), updates=(900,)),
        dict(x=(40, 300), index=np.array([7] * 200), updates=(200, 300)),
        dict(x=(5, 4), index=index((0,), 5), updates=(0, 4)),
        dict(x=(5, 4), index=np.array(1), updates=(4,)),
        dict(x=(5, 0), index=index((2,), 5), updates=(2, 0)),
        dict(x=np.zeros(4, np.int64), index=np.array([1, 1, 3]), updates=np.ones(3, np.int64)),
    ],
    dims={"x": "V 4", "index": "N", "updates": "N 4"},
    errors=[
        (
            dict(x=(4, 3), index=np.array([0, -1]), updates=(2, 3)),
            r"scatter_add: index -1 at position \[1\] is out of range for an axis of size 4",
            IndexError,
        ),
        (dict(x=(4, 3), index=np.array([0, 4]), updates=(2, 3)), r"index 4 at position \[1\]", IndexError),
        (
            dict(x=(4, 3), index=np.array([2**31, 0]), updates=(2, 3)),
            r"index 2147483648 at position \[0\]",
            IndexError,
        ),
        (
            dict(x=(4, 3), index=np.array([2**63 - 1, 0]), updates=(2, 3)),
            r"index 9223372036854775807 at position \[0\]",
            IndexError,
        ),
        (
            dict(x=(4, 3), index=np.array([0, 1]), updates=(2, 4)),
            r"scatter_add: updates must be \[2, 3\] \(sizes of the index, then a row of x\), got "
            r"float32\[2, 4\]",
        ),
        (
            dict(x=(4, 3), index=np.array([0]), updates=np.zeros((1, 3), np.int64)),
            r"scatter_add: x and updates must have one dtype",
            TypeError,
        ),
        (
            dict(x=np.eye(3) > 0, index=np.array([0]), updates=np.eye(3)[:1] > 0),
            r"a float one, int64 or int32",
            TypeError,
        ),
    ],
    bench=dict(x=(5000, 768), index=index((4096,), 5000), updates=(4096, 768)),
    torch=lambda t, x, index, updates: t.index_add(x, 0, index, updates),
)
test_all = spec.tests()
