import numpy as np
from optest import OpSpec
from plmcore import Tensor, ops


def ref(dense, rows, values):
    y = dense.copy()
    y[rows] += values
    return y


spec = OpSpec(
    op=lambda dense, rows, values: ops.add_rows(dense, Tensor.row_sparse(rows, values, dense.shape[0])),
    ref=ref,
    covers=["add_rows"],
    cases=[
        dict(dense=(10, 5), rows=np.array([0, 3, 9]), values=(3, 5)),
        dict(dense=(4, 5), rows=np.array([2]), values=(1, 5)),
        dict(dense=(4, 5), rows=np.zeros(0, np.int64), values=(0, 5)),
        dict(dense=(300, 769), rows=np.arange(0, 300, 3), values=(100, 769)),
    ],
    dims={"dense": "V 5", "rows": "N", "values": "N 5"},
    errors=[
        (
            dict(dense=(10, 5), rows=np.array([3, 10]), values=(2, 5)),
            r"add_rows: row 10 at position 1 is out of range for 10 rows",
            IndexError,
        ),
        (
            dict(dense=(10, 5), rows=np.array([-1]), values=(1, 5)),
            r"add_rows: row -1 at position 0",
            IndexError,
        ),
        (
            dict(dense=(10, 5), rows=np.array([3, 3]), values=(2, 5)),
            r"add_rows: rows must be sorted and unique, got 3 before 3",
        ),
        (dict(dense=(10, 4), rows=np.array([3]), values=(1, 5)), r"add_rows: the shapes must agree"),
    ],
    bench=dict(dense=(8192, 768), rows=np.arange(0, 8192, 4), values=(2048, 768)),
    torch=lambda t, dense, rows, values: dense.index_add(0, rows, values),
)
test_all = spec.tests()
