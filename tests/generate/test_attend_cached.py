import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, ops


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
