"""Attention and its gradients against torch's scaled_dot_product_attention."""

import numpy as np
import pytest
from plmcore import Tensor, ops

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

SIZES = [
    (8, 128, 128, 12, 64),
    (2, 77, 300, 3, 64),
    (1, 600, 600, 2, 80),
    (2, 1, 700, 4, 64),
    (3, 33, 65, 2, 41),
]


def inputs(B, T, S, H, D):
    rng = np.random.default_rng(T * S)
    return [rng.standard_normal((B, n, H, D), dtype=np.float32) for n in (T, S, S)], rng.standard_normal(
        (B, T, H, D), dtype=np.float32
    )


def in_torch(arrays, seed, **options):
    q, k, v = (torch.tensor(a.transpose(0, 2, 1, 3).astype(np.float64), requires_grad=True) for a in arrays)
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)
    y.backward(torch.tensor(seed.transpose(0, 2, 1, 3).astype(np.float64)))
    return [t.detach().numpy().transpose(0, 2, 1, 3) for t in (y, q.grad, k.grad, v.grad)]


def in_plmcore(arrays, seed, **options):
    q, k, v = (Tensor(a, requires_grad=True) for a in arrays)
    y = ops.attention(q, k, v, **options)
    y.backward(Tensor(seed))
    return [t.numpy() for t in (y, q.grad, k.grad, v.grad)]


def compare(actual, expected):
    for name, a, e in zip(("out", "dq", "dk", "dv"), actual, expected):
        error = np.abs(a - e).max() / max(1.0, np.abs(e).max())
        assert error < 1e-5, f"{name}: {error}"  # of float32 against float64; torch's own is as large


@pytest.mark.parametrize("size", SIZES)
def test_plain(size):
    arrays, seed = inputs(*size)
    compare(in_plmcore(arrays, seed), in_torch(arrays, seed))


@pytest.mark.parametrize("size", SIZES)
def test_causal(size):
    arrays, seed = inputs(*size)
    B, T, S, *_ = size
    see = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    compare(in_plmcore(arrays, seed, causal=True), in_torch(arrays, seed, attn_mask=see))


@pytest.mark.parametrize("size", SIZES)
def test_lengths_and_unscaled(size):
    arrays, seed = inputs(*size)
    B, T, S, *_ = size
    n = np.linspace(S // 2 + 1, S, B).astype(np.int32)
    see = torch.tensor(np.arange(S) < n[:, None])[:, None, None]
    compare(
        in_plmcore(arrays, seed, lengths=Tensor(n), scale=0.5),
        in_torch(arrays, seed, attn_mask=see, scale=0.5),
    )


@pytest.mark.parametrize("size", SIZES)
def test_bias(size):
    arrays, seed = inputs(*size)
    B, T, S, H, _ = size
    bias = np.random.default_rng(0).standard_normal((1, H, T, S), dtype=np.float32)
    b = torch.tensor(bias.astype(np.float64), requires_grad=True)
    expected = in_torch(arrays, seed, attn_mask=b)
    mine = Tensor(bias, requires_grad=True)
    compare(in_plmcore(arrays, seed, bias=mine), expected)
    assert np.abs(mine.grad.numpy() - b.grad.numpy()).max() < 5e-6 * max(1, np.abs(b.grad.numpy()).max())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_types_err_no_more_than_twice_the_naive_formula(dtype):
    arrays, _ = inputs(2, 200, 200, 3, 64)
    q, k, v = (torch.tensor(a.transpose(0, 2, 1, 3)).to(getattr(torch, dtype)) for a in arrays)
    exact = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
    naive = torch.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v
    rounded = [Tensor(x.float().numpy().transpose(0, 2, 1, 3), dtype=dtype) for x in (q, k, v)]
    mine = torch.tensor(ops.attention(*rounded).numpy().astype(np.float32).transpose(0, 2, 1, 3))
    assert (mine - exact).abs().max() <= 2 * (naive.float() - exact).abs().max()
