import numpy as np
from plmcore import Tensor, nn, ops


def test_parameter():
    p = nn.Parameter([1.0, 2.0])
    assert isinstance(p, Tensor) and p.requires_grad and p.dtype == "float32" and p.is_leaf
    assert not nn.Parameter(p, requires_grad=False).requires_grad
    assert nn.Parameter([1.0], dtype="float64").dtype == "float64"
    ops.sum_to(ops.mul(p, p), ()).backward()
    assert p.grad.numpy().tolist() == [2, 4]


def test_shares_memory_with_a_tensor():
    t = Tensor(np.zeros(3, np.float32))
    p = nn.Parameter(t)
    p.numpy()[0] = 5
    assert t.numpy()[0] == 5
