import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, nn, ops


def test_windows():
    layer = nn.Conv1d(4, 3, 3, padding=1)
    x = np.random.default_rng(0).standard_normal((2, 6, 4)).astype(np.float32)
    around = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    w, b = layer.weight.numpy(), layer.bias.numpy()
    expected = sum(around[:, k : k + 6] @ w[:, :, k].T for k in range(3)) + b
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), expected, atol=1e-6)
    assert list(dict(nn.Conv1d(4, 3, 2, bias=False).named_parameters())) == ["weight"]


def test_receptive_field_of_two_layers():
    first, second = nn.Conv1d(2, 5, 3, padding=1), nn.Conv1d(5, 4, 3, padding=1)
    x = Tensor(np.ones((1, 11, 2), np.float32), requires_grad=True)
    ops.sum(second(first(x))[:, 5]).backward()
    assert np.flatnonzero(x.grad.numpy().any((0, 2))).tolist() == [3, 4, 5, 6, 7]


def test_wrong_padding():
    with pytest.raises(plm.ArgumentError, match=r"Conv1d: padding must be in \[0, 3\), the width, got 3"):
        nn.Conv1d(4, 3, 3, padding=3)
