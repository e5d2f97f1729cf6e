import numpy as np
from optest import OpSpec
from plmcore import Tensor, ops


def ref(rows, values, V):
    y = np.zeros_like(values, shape=(V, *values.shape[1:]))
    y[rows] = values
    return y


spec = OpSpec(
    op=lambda rows, values, V: ops.to_dense(Tensor.row_sparse(rows, values, V)),
    ref=ref,
    covers=["to_dense"],
    cases=[
        dict(rows=np.array([0, 3, 9]), values=(3, 5), V=10),
        dict(rows=np.array([2]), values=(1, 5), V=10),
        dict(rows=np.zeros(0, np.int64), values=(0, 5), V=4),
        dict(rows=np.arange(0, 300, 3), values=(100, 769), V=300),
    ],
    dims={"rows": "N", "values": "N 5"},
    errors=[
        (
            dict(rows=np.array([3, 10]), values=(2, 5), V=10),
            r"to_dense: row 10 at position 1 is out of range for 10 rows",
            IndexError,
        )
    ],
    bench=dict(rows=np.arange(0, 8192, 4), values=(2048, 768), V=8192),
    torch=lambda t, rows, values, V: t.zeros(V, values.shape[1]).index_copy(0, rows, values),
)
test_all = spec.tests()


def test_a_dense_tensor_stays_itself():
    x = Tensor(np.ones((2, 3), np.float32))
    assert ops.to_dense(x).numpy() is not None and np.array_equal(ops.to_dense(x).numpy(), x.numpy())
