import math

import numpy as np
import pytest
from plmcore import Tensor, nn

x = np.linspace(-3, 3, 13).astype(np.float32)
EXPECTED = {
    "none": x,
    "relu": np.maximum(x, 0),
    "gelu": [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x],
    "gelu_tanh": 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "tanh": np.tanh(x),
    "sigmoid": 1 / (1 + np.exp(-x)),
    "silu": x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_values(name):
    np.testing.assert_allclose(nn.Activation(name)(Tensor(x)).numpy(), EXPECTED[name], atol=1e-6)


def test_classes():
    layers = {
        "relu": nn.ReLU(),
        "gelu": nn.GELU(),
        "gelu_tanh": nn.GELU(tanh_form=True),
        "tanh": nn.Tanh(),
        "sigmoid": nn.Sigmoid(),
        "silu": nn.SiLU(),
    }
    for name, layer in layers.items():
        assert layer.name == name and name in repr(layer)


def test_unknown():
    with pytest.raises(ValueError, match="there is no activation 'swoosh'; one of none, relu, gelu"):
        nn.Activation("swoosh")
