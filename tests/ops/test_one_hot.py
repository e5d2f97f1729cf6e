import numpy as np
from optest import OpSpec
from plmcore import ops

ids = np.random.default_rng(0).integers(0, 7, (5, 3))

spec = OpSpec(
    op=ops.one_hot,
    ref=lambda ids, size, dtype="float32": np.eye(size)[ids].astype(dtype),
    cases=[
        dict(ids=ids, size=7),
        dict(ids=ids[:2], size=7),
        dict(ids=ids.astype(np.int32), size=7, dtype="int64"),
        dict(ids=ids, size=769, dtype="bool"),
        dict(ids=np.arange(600) % 300, size=300, dtype="float64"),
        dict(ids=np.array(3), size=4),
        dict(ids=np.zeros((0, 2), np.int64), size=4),
    ],
    dims={"ids": "B T"},
    errors=[
        (
            dict(ids=np.array([[0, 1], [5, 2]]), size=5),
            r"one_hot: index 5 at position \[1, 0\] is out of range for an axis of size 5",
            IndexError,
        ),
        (dict(ids=np.array([-1]), size=5), r"one_hot: index -1 at position \[0\]", IndexError),
        (
            dict(ids=np.array([2**63 - 1]), size=5),
            r"one_hot: index 9223372036854775807 at position \[0\]",
            IndexError,
        ),
        (dict(ids=(3,), size=5), r"one_hot: indices must be int64 or int32, got float32\[3\]", TypeError),
    ],
    bench=dict(ids=np.arange(4096) % 769, size=769),
    torch=lambda t, ids, size: t.nn.functional.one_hot(ids, size).float(),
)
test_all = spec.tests()
