import numpy as np
from optest import OpSpec
from plmcore import Tensor, ops


def split(x, sizes, axis=0):
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


spec = OpSpec(
    op=ops.split,
    ref=split,
    cases=[
        dict(x=(2, 9, 4), sizes=[1, 5, 3], axis=1),
        dict(x=(6, 13, 4), sizes=[1, 5, 7], axis=1),
        dict(x=(37, 769), sizes=[768, 1], axis=-1),
        dict(x=(5, 40), sizes=[4] * 10, axis=1),
        dict(x=(130, 1281), sizes=[513, 768], axis=1),
        dict(x=(3, 4), sizes=[4], axis=1),
        dict(x=(3, 4), sizes=[0, 4], axis=1),
        dict(x=(0, 4), sizes=[1, 3], axis=1),
        dict(x=np.arange(12).reshape(2, 6), sizes=[2, 2, 2], axis=1),
    ],
    dims={"x": "B T 4", "sizes": "1 5 T-6"},
    errors=[
        (
            dict(x=(2, 3), sizes=[2, 2], axis=1),
            r"split: sizes \[2, 2\] must add up to axis 1 of float32\[2, 3\]",
        ),
        (dict(x=(2, 3), sizes=[2, 1], axis=2), r"split: axis 2 is out of range for 2 axes", IndexError),
    ],
    bench=dict(x=(4096, 2304), sizes=[768, 768, 768], axis=1),
    torch=lambda t, x, sizes, axis: tuple(y.contiguous() for y in t.split(x, sizes, axis)),
)
test_all = spec.tests()

rows = OpSpec(
    op=ops.split,
    ref=split,
    cases=[
        dict(x=(9, 4), sizes=[1, 5, 3]),
        dict(x=(13, 4), sizes=[1, 5, 7]),
        dict(x=(37, 769), sizes=[36, 1]),
        dict(x=(150,), sizes=[1] * 150),
        dict(x=(5, 3), sizes=[5]),
        dict(x=(0, 4), sizes=[0, 0]),
        dict(x=np.arange(5), sizes=[2, 3]),
    ],
    dims={"x": "T 4", "sizes": "1 5 T-6"},
    errors=[
        (dict(x=(3,), sizes=[2, 2]), r"split_rows: sizes \[2, 2\] must add up to axis 0 of float32\[3\]")
    ],
    covers=["split_rows"],
)
test_rows = rows.tests()


def test_pieces_of_the_first_axis_share_memory():
    x = ops.full([4, 2], 1.0)
    ops.split(x, [1, 3])[1].numpy()[:] = 5
    assert x.numpy().tolist() == [[1, 1], [5, 5], [5, 5], [5, 5]]


def test_a_piece_that_is_not_used_gets_no_gradient():
    x = Tensor(np.arange(6, dtype=np.float32), requires_grad=True)
    ops.split(x, [2, 3, 1])[1].backward(Tensor([1.0, 2.0, 3.0]))
    assert x.grad.numpy().tolist() == [0, 0, 1, 2, 3, 0]
