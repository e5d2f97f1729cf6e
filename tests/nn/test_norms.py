import numpy as np
from plmcore import Tensor, nn

x = np.random.default_rng(0).standard_normal((2, 3, 7)).astype(np.float32) * 3 + 1


def test_layer_norm():
    norm = nn.LayerNorm(7, eps=1e-3)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(norm(Tensor(x)).numpy(), expected, atol=1e-5)
    assert [n for n, _ in norm.named_parameters()] == ["gamma", "beta"]
    assert "eps=0.001" in repr(norm)


def test_rms_norm():
    norm = nn.RMSNorm(7, eps=1e-3)
    np.testing.assert_allclose(
        norm(Tensor(x)).numpy(), x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3), atol=1e-5
    )
    assert [n for n, _ in norm.named_parameters()] == ["gamma"]


def test_layer_norm_with_a_residual():
    x, r = (np.random.default_rng(i).standard_normal((2, 3, 8)).astype(np.float32) for i in (1, 2))
    norm = nn.LayerNorm(8)
    expected = norm(Tensor(x + r)).numpy()
    np.testing.assert_allclose(norm(Tensor(x), residual=Tensor(r)).numpy(), expected, atol=1e-6)
    y, s = norm.with_sum(Tensor(x), Tensor(r))
    np.testing.assert_allclose(y.numpy(), expected, atol=1e-6)
    np.testing.assert_array_equal(s.numpy(), x + r)


def test_initialiser_of_rms_norm():
    assert (nn.RMSNorm(7, gamma_init=nn.init.constant(0.5)).gamma.numpy() == 0.5).all()
