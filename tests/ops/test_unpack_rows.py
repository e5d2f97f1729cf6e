import numpy as np
from optest import OpSpec
from plmcore import ops


def unpack_rows(rows, index, B, T):
    y = np.zeros_like(rows, shape=(B * T, *rows.shape[1:]))
    y[index] = rows
    return y.reshape(B, T, *rows.shape[1:])


def none():
    return np.zeros(0, np.int64)


spec = OpSpec(
    op=ops.unpack_rows,
    ref=unpack_rows,
    cases=[
        dict(rows=(4, 8), index=np.array([0, 2, 3, 5]), B=2, T=3),
        dict(rows=(1, 8), index=np.array([4]), B=2, T=3),
        dict(rows=(50, 769), index=np.arange(0, 100, 2), B=10, T=10),
        dict(rows=(3, 2, 3), index=np.array([1, 2, 3]), B=1, T=5),
        dict(rows=(3,), index=np.array([1, 2, 3]), B=4, T=1),
        dict(rows=(0, 8), index=none(), B=2, T=3),
        dict(rows=(0, 8), index=none(), B=0, T=3),
        dict(rows=np.arange(3), index=np.array([1, 2, 3]), B=4, T=1),
    ],
    dims={"rows": "N 8", "index": "N"},
    errors=[
        (
            dict(rows=(2, 8), index=np.array([0, 6]), B=2, T=3),
            r"unpack_rows: row 6 at position 1 is out of range for 6 rows",
            IndexError,
        ),
        (
            dict(rows=(2, 8), index=np.array([-1, 6]), B=2, T=3),
            r"unpack_rows: row -1 at position 0",
            IndexError,
        ),
        (
            dict(rows=(2, 8), index=np.array([3, 1]), B=2, T=3),
            r"unpack_rows: rows must be sorted and unique, got 3 before 1",
        ),
        (
            dict(rows=(2, 8), index=np.array([3]), B=2, T=3),
            r"unpack_rows: rows must be \[N, ...\] and index \[N\]",
        ),
        (
            dict(rows=(2, 8), index=np.array([0, 1], np.int32), B=2, T=3),
            r"unpack_rows: index must be int64",
            TypeError,
        ),
    ],
    bench=dict(rows=(2048, 768), index=np.arange(0, 4096, 2), B=32, T=128),
)
test_all = spec.tests()
