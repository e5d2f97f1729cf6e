import numpy as np
import pytest
from plmcore import Tensor, nn

x = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)


def test_value():
    lin = nn.Linear(3, 4, bias_init=nn.init.normal(1.0))
    expected = x @ lin.weight.numpy().T + lin.bias.numpy()
    np.testing.assert_allclose(lin(Tensor(x)).numpy(), expected, atol=1e-5)
    lin.activation = "relu"
    np.testing.assert_allclose(lin(Tensor(x)).numpy(), np.maximum(expected, 0), atol=1e-5)


def test_no_bias():
    lin = nn.Linear(3, 4, bias=False)
    assert lin.bias is None and [n for n, _ in lin.named_parameters()] == ["weight"]
    np.testing.assert_allclose(lin(Tensor(x)).numpy(), x @ lin.weight.numpy().T, atol=1e-5)


def test_initialisation():
    lin = nn.Linear(100, 50)
    assert np.abs(lin.weight.numpy()).max() <= 0.1 and np.abs(lin.weight.numpy()).max() > 0.09
    assert not lin.bias.numpy().any()
    assert abs(nn.Linear(200, 200, weight_init=nn.init.normal(0.02)).weight.numpy().std() - 0.02) < 1e-3


def test_error():
    with pytest.raises(ValueError, match="linear"):
        nn.Linear(4, 4)(Tensor(x))
    with pytest.raises(ValueError, match="Linear: there is no activation 'swoosh'; one of none, relu, gelu"):
        nn.Linear(4, 4, activation="swoosh")
    with pytest.raises(ValueError, match="a size must not be negative, got -1"):
        nn.Linear(-1, 4)


def test_a_shared_weight():
    table = nn.Embedding(5, 3)
    out = nn.Linear(3, 5, weight=table.weight)
    assert out.weight is table.weight and out.bias.shape == (5,)
    with pytest.raises(ValueError, match=r"Linear: the shared weight must be \[6, 3\], got \[5, 3\]"):
        nn.Linear(3, 6, weight=table.weight)
