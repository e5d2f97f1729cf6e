import numpy as np
from optest import OpSpec
from plmcore import Tensor, ops

spec = OpSpec(
    op=ops.global_norm,
    ref=lambda list: np.sqrt(sum((x * x).sum() for x in list)),
    cases=[
        dict(list=[(2, 3), (5,), ()]),
        dict(list=[(4, 3), (5,), ()]),
        dict(list=[(37,)]),
        dict(list=[(3, 40001), (0,), (769,)]),
        dict(list=[np.array([3e30, -4e30])]),
        dict(list=[np.array([1.0, np.inf])]),
        dict(list=[np.array([1.0, np.nan])]),
    ],
    dims={"list": ["B 3", "5", ""]},
    dtypes=("float64", "float32", "bfloat16"),
    errors=[(dict(list=[(2,), np.array([1, 2])]), r"needs float tensors, got int64\[2\] at 1")],
    bench=dict(list=[(4096, 768), (768, 3072)]),
    torch=lambda t, list: t.nn.utils.get_total_norm(list),
)
test_all = spec.tests()


def test_none_and_the_empty_list():
    assert ops.global_norm([]).item() == 0
    assert ops.global_norm([None, Tensor([3.0, 4.0]), None]).item() == 5


def test_row_sparse():
    sparse = Tensor.row_sparse(Tensor(np.array([1, 7])), Tensor(np.array([[3.0], [4.0]], np.float32)), 9)
    assert ops.global_norm([sparse, Tensor([12.0])]).item() == 13


def test_many_small_values():
    """A float32 sum of 2^24 ones plus more stops growing; this one does not."""
    x = Tensor(np.ones(1 << 25, np.float32))
    assert ops.global_norm([x]).item() == np.float32(np.sqrt(2.0**25))
