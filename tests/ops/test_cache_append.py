import numpy as np
import plmcore as plm
import pytest
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


@pytest.mark.parametrize("B, n", [(1, 1), (3, 1), (1, 4), (2, 3)])
def test_attend_cached_is_append_and_attention(B, n):
    rng = np.random.default_rng(B + n)
    draw = lambda *shape: Tensor(rng.standard_normal(shape, dtype=np.float32))
    qkv, cache, bias = draw(B, n, 3 * 2 * 5), draw(B, 9, 2, 2, 5), draw(1, 2, n, 9)
    lengths, mask = Tensor(np.full(B, 4 + n)), Tensor(rng.random((B, 1, n, 9)) < 0.7)
    parts = qkv.numpy().reshape(B, n, 3, 2, 5)
    whole = cache.numpy().copy()
    whole[:, 4 : 4 + n] = parts[:, :, 1:]
    asked = dict(lengths=lengths, mask=mask, bias=bias, scale=0.3)
    expected = ops.attention(Tensor(parts[:, :, 0].copy()), Tensor(whole), **asked).numpy().reshape(B, n, 10)
    assert np.array_equal(ops.attend_cached(qkv, cache, 4, **asked).numpy(), expected)
    assert np.array_equal(cache.numpy(), whole)


def test_attend_cached_refuses():
    cache, qkv = Tensor(np.zeros((2, 4, 2, 1, 3), np.float32)), Tensor(np.zeros((2, 1, 9), np.float32))
    with pytest.raises(plm.ShapeError, match=r"attend_cached: qkv must be \[B, n, 9\]"):
        ops.attend_cached(Tensor(np.zeros((2, 1, 8), np.float32)), cache, 0)
    with pytest.raises(plm.ShapeError, match=r"attend_cached: the cache must be \[B, P, 2, H, D\]"):
        ops.attend_cached(qkv, Tensor(np.zeros((2, 4, 3), np.float32)), 0)
    with pytest.raises(IndexError, match="not inside an axis of size 4"):
        ops.attend_cached(qkv, cache, 4)
