"""Attention against NumPy with every mask written out: each layout, each option, and the combinations models
use.
"""

import numpy as np
import pytest
from attention_reference import attention
from optest import SEED, OpSpec
from plmcore import Tensor, _core, ops

rng = np.random.default_rng(11)


def separate(B, T, S, H, D, **options):
    return dict(q=(B, T, H, D), k=(B, S, H, D), v=(B, S, H, D), **options)


def random_mask(*shape):
    return rng.random(shape) < 0.7


def torch_attention(t, q, k, v, causal=False):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)


lengths = lambda *n: np.array(n, np.int64)  # noqa: E731

plain = OpSpec(
    op=ops.attention,
    ref=attention,
    cases=[
        separate(2, 5, 7, 2, 8),
        separate(1, 9, 3, 2, 8),
        separate(1, 29, 37, 3, 37),
        separate(1, 150, 201, 1, 64),  # several blocks of queries and keys
        separate(2, 6, 1100, 1, 24),  # online softmax over several key blocks
        separate(1, 541, 20, 1, 8),  # several tasks for one head
        separate(2, 1, 300, 3, 16),  # decoding: runs of keys are joined
        separate(1, 3, 9, 2, 5),
        separate(0, 5, 7, 2, 8),
        separate(2, 0, 7, 2, 8),
        separate(2, 5, 0, 2, 8),
        separate(2, 1, 0, 2, 8),
    ],
    grad_cancels=4,  # dP - rowsum(dO * O) is the difference of two sums; for a single key it is 0
    dims={"q": "B T 2 8", "k": "B S 2 8", "v": "B S 2 8"},
    errors=[
        (dict(q=(2, 5, 8), k=(2, 7, 2, 8), v=(2, 7, 2, 8)), r"q must be \[B, T, H, D\], got \[2, 5, 8\]"),
        (
            dict(q=(2, 5, 2, 8), k=(2, 7, 2, 8), v=(2, 6, 2, 8)),
            r"v must be \[2, 7, 2, 8\] like k, got \[2, 6, 2, 8\]",
        ),
        (
            dict(q=(2, 5, 2, 8), k=(2, 7, 3, 8), v=(2, 7, 3, 8)),
            r"q and k must agree in batch, heads and head width, got \[2, 5, 2, 8\] and \[2, 7, 3, 8\]",
        ),
        (dict(q=(2, 5, 2, 8), k=(2, 7, 2, 8)), r"kv must be \[B, S, 2, H, D\], got \[2, 7, 2, 8\]"),
        (dict(q=(2, 5, 2, 8)), r"qkv must be \[B, T, 3, H, D\], got \[2, 5, 2, 8\]"),
        (dict(q=(2, 5, 4, 2, 8)), r"the axis before the heads of qkv must be 3, got \[2, 5, 4, 2, 8\]"),
        (dict(q=(2, 5, 2, 8), v=(2, 7, 2, 8)), r"v is given without k"),
        (
            dict(q=np.ones((2, 5, 2, 8), int), k=(2, 7, 2, 8), v=(2, 7, 2, 8)),
            r"needs a float dtype, got int64",
            TypeError,
        ),
        (
            separate(2, 5, 7, 2, 8, lengths=lengths(1, 2, 3)),
            r"lengths must be \[2\], one per sequence, got \[3\]",
        ),
        (separate(2, 5, 7, 2, 8, lengths=lengths(3, 8)), r"lengths\[1\] is 8, outside 0..7 keys"),
        (separate(2, 5, 7, 2, 8, lengths=lengths(-1, 2)), r"lengths\[0\] is -1, outside 0..7 keys"),
        (separate(2, 5, 7, 2, 8, lengths=np.ones(2)), r"lengths must be int64 or int32", TypeError),
        (separate(2, 5, 7, 2, 8, band=3), r"band, stride, prefix and start need causal=True"),
        (
            separate(2, 5, 7, 2, 8, causal=True, band=-3),
            r"band and stride must not be negative, got -3 and 0",
        ),
        (separate(2, 5, 7, 2, 8, dropout=1.0), r"dropout must be in \[0, 1\), got 1"),
        (
            separate(2, 5, 7, 2, 8, mask=np.ones((2, 2, 5, 6), bool)),
            r"mask must be \[2 or 1, 2 or 1, 5 or 1, 7\], got \[2, 2, 5, 6\]",
        ),
        (separate(2, 5, 7, 2, 8, mask=np.ones((2, 2, 5, 7), np.int32)), r"mask must be bool", TypeError),
        (
            separate(2, 5, 7, 2, 8, bias=(2, 2, 1, 7)),
            r"bias must be \[2 or 1, 2 or 1, 5, 7\], got \[2, 2, 1, 7\]",
        ),
    ],
    bench=[
        dict(q=(B, T, 12, 64), k=(B, T, 12, 64), v=(B, T, 12, 64), causal=causal)
        for B, T in [(8, 128), (4, 256), (2, 512), (1, 1024), (1, 2048)]
        for causal in (False, True)
    ],
    torch=torch_attention,
)
test_plain = plain.tests()

masks = OpSpec(
    op=ops.attention,
    ref=attention,
    cases=[
        separate(2, 13, 13, 2, 8, causal=True),
        separate(1, 21, 21, 2, 8, causal=True),
        separate(1, 5, 17, 2, 8, causal=True),
        separate(1, 17, 5, 2, 8, causal=True),  # the first queries see nothing
        separate(1, 200, 200, 1, 16, causal=True),
        separate(1, 60, 700, 1, 16, causal=True),
        separate(2, 2, 300, 2, 8, causal=True),  # decoding
        separate(3, 9, 40, 2, 8, lengths=lengths(40, 0, 17)),
        separate(3, 1, 400, 2, 8, lengths=lengths(129, 0, 400)),
        separate(3, 40, 40, 1, 16, causal=True, lengths=lengths(33, 40, 1)),
        separate(2, 30, 30, 2, 8, causal=True, band=4),
        separate(1, 150, 600, 1, 8, causal=True, band=33),
        separate(1, 40, 40, 1, 8, causal=True, stride=7),
        separate(1, 150, 150, 1, 8, causal=True, band=5, stride=16),
        separate(2, 20, 33, 1, 8, causal=True, prefix=lengths(0, 15)),
        separate(2, 50, 50, 1, 8, causal=True, band=6, prefix=lengths(9, 40)),
        separate(
            2, 50, 50, 1, 8, causal=True, band=6, stride=10, prefix=lengths(3, 0), lengths=lengths(50, 31)
        ),
        separate(3, 2, 64, 2, 8, causal=True, start=np.array([0, 61, 30], np.int32)),
        separate(2, 12, 64, 2, 8, causal=True, start=lengths(0, 30)),
        separate(2, 11, 19, 2, 8, mask=random_mask(2, 2, 11, 19)),
        separate(2, 11, 130, 3, 8, mask=random_mask(1, 3, 11, 130)),
        separate(2, 11, 19, 2, 8, mask=random_mask(2, 1, 1, 19)),
        separate(2, 3, 19, 2, 8, mask=random_mask(2, 1, 3, 19)),
        separate(2, 11, 19, 2, 8, mask=np.zeros((1, 1, 11, 19), bool)),  # nothing to see
        separate(2, 11, 19, 2, 8, mask=random_mask(1, 1, 11, 19), causal=True, lengths=lengths(19, 12)),
    ],
    grad_cancels=4,  # dP - rowsum(dO * O) is the difference of two sums; for a single key it is 0
    dims={"q": "B T 2 8", "k": "B S 2 8", "v": "B S 2 8"},
)
test_masks = masks.tests()

scores = OpSpec(
    op=ops.attention,
    ref=attention,
    cases=[
        separate(2, 5, 7, 3, 8, bias=(2, 3, 5, 7)),
        separate(2, 5, 7, 3, 8, bias=(1, 3, 5, 7)),
        separate(3, 19, 33, 3, 8, bias=(1, 3, 19, 33)),
        separate(2, 5, 7, 3, 8, bias=(2, 1, 5, 7)),
        separate(2, 5, 7, 3, 8, bias=(1, 1, 5, 7)),
        separate(2, 100, 230, 2, 16, bias=(1, 2, 100, 230), causal=True),
        separate(1, 7, 600, 1, 8, bias=(1, 1, 7, 600)),
        separate(1, 2, 200, 2, 8, bias=(1, 2, 2, 200), causal=True),
        separate(
            2,
            12,
            12,
            2,
            8,
            bias=(1, 2, 12, 12),
            causal=True,
            lengths=lengths(12, 5),
            mask=random_mask(2, 1, 12, 12),
        ),
        separate(2, 0, 7, 3, 8, bias=(1, 3, 0, 7)),
        separate(2, 5, 7, 2, 8, scale=1.0),
        separate(2, 5, 7, 2, 8, scale=0.0),
        separate(2, 5, 7, 2, 8, scale=0.3, weights=True),
        separate(1, 3, 7, 2, 8, scale=0.3, weights=True),
        separate(2, 20, 520, 1, 8, causal=True, weights=True),
        separate(2, 17, 5, 2, 8, causal=True, weights=True, bias=(1, 2, 17, 5)),
        separate(2, 5, 7, 2, 8, dropout=0.25),
        separate(2, 30, 150, 2, 8, dropout=0.5, causal=True),
        separate(1, 7, 600, 1, 8, dropout=0.1),
        separate(2, 1, 20, 2, 8, dropout=0.1),
        separate(2, 9, 140, 2, 8, dropout=0.5, weights=True, bias=(2, 2, 9, 140)),
    ],
    grad_cancels=4,  # dP - rowsum(dO * O) is the difference of two sums; for a single key it is 0
    dims={"q": "B T 3 8", "k": "B S 3 8", "v": "B S 3 8", "bias": "1 3 T S"},
)
test_scores = scores.tests()

packed = OpSpec(
    op=ops.attention,
    ref=attention,
    cases=[
        dict(q=(2, 5, 3, 2, 8)),
        dict(q=(1, 40, 3, 2, 8)),
        dict(q=(2, 130, 3, 1, 64), causal=True),
        dict(q=(1, 1, 3, 2, 8)),
        dict(q=(2, 9, 3, 2, 7), dropout=0.3, lengths=lengths(9, 4)),
        dict(q=(0, 9, 3, 2, 7)),
        dict(q=(2, 9, 2, 8), k=(2, 30, 2, 2, 8)),
        dict(q=(2, 2, 2, 8), k=(2, 300, 2, 2, 8), lengths=lengths(200, 9)),
    ],
    grad_cancels=4,  # dP - rowsum(dO * O) is the difference of two sums; for a single key it is 0
    dims={"q": "B T 3 2 8"},
)
test_packed = packed.tests()

ragged = OpSpec(
    op=ops.attention,
    ref=attention,
    cases=[
        dict(q=(12, 2, 8), k=(12, 2, 8), v=(12, 2, 8), offsets=lengths(0, 5, 5, 12)),
        dict(q=(20, 3, 2, 8), offsets=lengths(0, 7, 19, 20)),
        dict(q=(31, 3, 2, 8), offsets=lengths(0, 1, 31, 31)),
        dict(q=(700, 3, 1, 8), offsets=np.array([0, 540, 700], np.int32), causal=True),
        dict(q=(40, 1, 8), k=(40, 2, 1, 8), offsets=lengths(0, 11, 40), causal=True, band=5),
        dict(q=(20, 3, 2, 8), offsets=lengths(0, 7, 20), bias=(1, 2, 13, 16)),
        dict(q=(20, 3, 2, 8), offsets=lengths(0, 7, 20), bias=(2, 1, 20, 20), mask=random_mask(1, 1, 1, 13)),
        dict(q=(20, 3, 2, 8), offsets=lengths(0, 7, 20), dropout=0.4),
        dict(q=(20, 3, 2, 8), offsets=lengths(0, 7, 20), causal=True, prefix=lengths(3, 9)),
        dict(q=(0, 3, 2, 8), offsets=lengths(0, 0)),
        dict(q=(0, 3, 2, 8), offsets=lengths(0)),
    ],
    grad_cancels=4,  # dP - rowsum(dO * O) is the difference of two sums; for a single key it is 0
    dims={"q": "N 3 2 8", "offsets": "B"},
    errors=[
        (
            dict(q=(12, 3, 2, 8), offsets=lengths(0, 5, 4, 12)),
            r"offsets must rise from 0 to the 12 rows of q, got 4 at position 2",
        ),
        (
            dict(q=(12, 3, 2, 8), offsets=lengths(0, 5, 11)),
            r"offsets must rise from 0 to the 12 rows of q, got 11 at position 2",
        ),
        (
            dict(q=(12, 3, 2, 8), offsets=lengths(1, 12)),
            r"offsets must rise from 0 to the 12 rows of q, got 1 at position 0",
        ),
        (
            dict(q=(12, 3, 2, 8), offsets=lengths(0, 2**62)),
            r"offsets must rise from 0 to the 12 rows of q, got 4611686018427387904",
        ),
        (dict(q=(12, 2, 8), offsets=lengths(0, 12)), r"qkv must be \[N, 3, H, D\], got \[12, 2, 8\]"),
        (
            dict(q=(12, 3, 2, 8), offsets=lengths(0, 12), lengths=lengths(3)),
            r"lengths, start and weights need rows with a batch axis",
        ),
        (
            dict(q=(12, 3, 2, 8), offsets=lengths(0, 12), weights=True),
            r"lengths, start and weights need rows with a batch axis",
        ),
        (
            dict(q=(12, 3, 2, 8), offsets=lengths(0, 12), bias=(1, 2, 11, 12)),
            r"bias must cover the longest sequence, 12 rows, got 11 by 12",
        ),
        (dict(q=(12, 3, 2, 8), offsets=np.zeros((2, 2), int)), r"offsets must be int64 or int32 \[B \+ 1\]"),
    ],
)
test_ragged = ragged.tests()


def test_keys_beyond_the_lengths_are_never_read():
    q, k = rng.standard_normal((2, 3, 2, 8), np.float32), rng.standard_normal((2, 50, 2, 8), np.float32)
    n = lengths(20, 50)
    clean = ops.attention(Tensor(q), Tensor(k), Tensor(k), lengths=Tensor(n)).numpy()
    k[0, 20:] = np.nan
    for T in (1, 3):
        out = ops.attention(Tensor(q[:, :T]), Tensor(k), Tensor(k), lengths=Tensor(n)).numpy()
        assert np.allclose(out, clean[:, :T], atol=1e-6)
    wide = np.repeat(q, 3, axis=1)
    assert np.isfinite(ops.attention(Tensor(wide), Tensor(k), Tensor(k), lengths=Tensor(n)).numpy()).all()


def test_nan_and_inf_pass_by_the_maths():
    q, k, v = (rng.standard_normal((1, 20, 1, 8), np.float32) for _ in range(3))
    q[0, 3, 0, 0] = np.nan
    v[0, 5, 0, 2] = np.inf
    out = ops.attention(Tensor(q), Tensor(k), Tensor(v)).numpy()[0, :, 0]
    assert np.isnan(out[3]).all()
    rest = np.delete(out, 3, 0)
    assert np.isposinf(rest[:, 2]).all() and np.isfinite(np.delete(rest, 2, 1)).all()


def test_large_scores_do_not_overflow():
    q = np.full((1, 8, 1, 4), 1e4, np.float32)
    k = np.stack([np.full((40, 1, 4), x, np.float32) for x in np.linspace(-1e4, 1e4, 3)])[[2]]
    out = ops.attention(Tensor(q), Tensor(k), Tensor(np.ones_like(k))).numpy()
    assert np.allclose(out, 1)


@pytest.mark.parametrize("T", [2, 40])  # decoding and tiles
def test_a_bias_that_hides_a_whole_row_leaves_even_weights_and_their_gradient(T):
    """At -1e15 the scores of a row are equal in float32, and the logarithm of their sum is far below their
    rounding.
    """
    q, k, v = (Tensor(rng.standard_normal((1, n, 2, 8)).astype("f"), requires_grad=True) for n in (T, 33, 33))
    bias = np.zeros((1, 1, T, 33), "f")
    bias[..., 1, :] = -1e15
    out = ops.attention(q, k, v, bias=Tensor(bias))
    hidden = out[:, 1]
    np.testing.assert_allclose(hidden.numpy(), v.numpy().mean(1), atol=1e-6)
    hidden.sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), np.full((1, 33, 2, 8), 1 / 33), rtol=1e-5)


def test_dropout_draws_new_masks_and_keeps_its_mean():
    x = np.ones((4, 64, 4, 8), np.float32)
    _core.manual_seed(3)
    a, b = (
        ops.attention(Tensor(x), Tensor(x), Tensor(x), dropout=0.25, weights=True)[1].numpy()
        for _ in range(2)
    )
    assert not np.array_equal(a, b)
    for w in (a, b):
        assert abs((w == 0).mean() - 0.25) < 0.01
        assert abs(w.sum(-1).mean() - 1) < 0.01


def test_memory_is_linear_in_length():
    def peak(T):
        x = Tensor(np.zeros((1, T, 3, 1, 64), np.float32))
        x.requires_grad = True
        _core.reset_peak_memory()
        before = _core.memory_stats()["in_use"]
        ops.attention(x, causal=True).backward(Tensor(np.zeros((1, T, 1, 64), np.float32)))
        return _core.memory_stats()["peak"] - before

    threads = _core.num_threads()
    try:
        _core.set_num_threads(2)
        assert peak(16384) < 2.2 * peak(8192) < 8192 * 8192 * 4
    finally:
        _core.set_num_threads(threads)


@pytest.mark.parametrize("shape", [(7, 149, 8, 97), (1, 700, 2, 64)])
def test_threads_give_the_same_bits(shape):
    B, T, H, D = shape
    x = rng.standard_normal((B, T, 3, H, D), dtype=np.float32)
    bias = rng.standard_normal((1, H, T, T), dtype=np.float32)
    before, first = _core.num_threads(), None
    try:
        for n in (1, 2, 3, 4, 8):
            _core.set_num_threads(n)
            _core.manual_seed(SEED)
            qkv, b = Tensor(x), Tensor(bias)
            qkv.requires_grad = b.requires_grad = True
            y = ops.attention(qkv, bias=b, causal=True, dropout=0.1)
            y.backward(y.detach())
            found = [y.numpy().tobytes(), qkv.grad.numpy().tobytes(), b.grad.numpy().tobytes()]
            first = first or found
            assert found == first
    finally:
        _core.set_num_threads(before)
