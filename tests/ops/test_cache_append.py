import numpy as np
from optest import OpSpec
from plmcore import Tensor, ops


def cache_append(cache, rows, position):
    cache = ops.copy(cache)
    ops.cache_append(cache, rows, position)
    return cache


def ref(cache, rows, position):
    y = cache.copy()
    y[:, position : position + rows.shape[1]] = rows
    return y


spec = OpSpec(
    op=cache_append,
    ref=ref,
    covers=["cache_append"],
    cases=[
        dict(cache=(2, 5, 4), rows=(2, 1, 4), position=3),
        dict(cache=(3, 9, 4), rows=(3, 6, 4), position=3),
        dict(cache=(2, 70, 12, 37), rows=(2, 33, 12, 37), position=37),
        dict(cache=(2, 5), rows=(2, 5), position=0),
        dict(cache=(2, 5, 4), rows=(2, 0, 4), position=5),
        dict(cache=(0, 5, 4), rows=(0, 1, 4), position=2),
        dict(cache=np.zeros((2, 5), np.int32), rows=np.ones((2, 2), np.int32), position=1),
    ],
    dims={"cache": "B P 4", "rows": "B T 4"},
    errors=[
        (
            dict(cache=(2, 5, 4), rows=(2, 2, 4), position=4),
            r"cache_append: the range \[4, 6\) is not inside an axis of size 5",
            IndexError,
        ),
        (
            dict(cache=(2, 5, 4), rows=(2, 2, 3), position=0),
            r"cache_append: cache must be \[B, P, ...\] and rows \[B, T, ...\]",
        ),
        (
            dict(cache=(2, 5, 4), rows=np.ones((2, 2, 4)), position=0),
            r"cache_append: cache and rows must have one dtype",
            TypeError,
        ),
    ],
    bench=dict(cache=(8, 512, 12, 64), rows=(8, 1, 12, 64), position=300),
)
test_all = spec.tests()


def test_in_place_without_touching_the_rest():
    cache = Tensor(np.zeros((2, 4, 3), np.float32))
    view = cache.numpy()
    assert ops.cache_append(cache, np.ones((2, 1, 3), np.float32), 2) is None
    assert view[:, 2].min() == 1 and view.sum() == 6
