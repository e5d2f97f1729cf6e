import numpy as np
from optest import OpSpec
from plmcore import Tensor, ops


def merged(rows_a, a, rows_b, b, V):
    sum_ = ops.merge_rows(Tensor.row_sparse(rows_a, a, V), Tensor.row_sparse(rows_b, b, V))
    return sum_.rows, sum_.values


def ref(rows_a, a, rows_b, b, V):
    dense = np.zeros_like(a, shape=(V, *a.shape[1:]))
    dense[rows_a] += a
    dense[rows_b] += b
    rows = np.union1d(rows_a, rows_b)
    return rows, dense[rows]


def rows(*numbers):
    return np.array(numbers, np.int64)


spec = OpSpec(
    op=merged,
    ref=ref,
    covers=["merge_rows"],
    cases=[
        dict(rows_a=rows(0, 3, 8), a=(3, 5), rows_b=rows(3, 9), b=(2, 5), V=10),
        dict(rows_a=rows(2), a=(1, 5), rows_b=rows(0, 1, 2, 9), b=(4, 5), V=10),
        dict(rows_a=rows(), a=(0, 5), rows_b=rows(4), b=(1, 5), V=10),
        dict(rows_a=rows(7), a=(1, 5), rows_b=rows(), b=(0, 5), V=10),
        dict(rows_a=rows(), a=(0, 5), rows_b=rows(), b=(0, 5), V=10),
        dict(rows_a=np.arange(0, 300, 2), a=(150, 769), rows_b=np.arange(0, 300, 3), b=(100, 769), V=300),
    ],
    dims={"rows_a": "N", "a": "N 5", "rows_b": "M", "b": "M 5"},
    errors=[
        (
            dict(rows_a=rows(1), a=(2, 5), rows_b=rows(3), b=(1, 5), V=10),
            r"rows must be \[n\] and values \[n, ...\]",
        )
    ],
    bench=dict(
        rows_a=np.arange(0, 4096, 2), a=(2048, 768), rows_b=np.arange(0, 4096, 3), b=(1366, 768), V=4096
    ),
)
test_all = spec.tests()
