import numpy as np
import pytest
from plmcore import Tensor, nn


def test_module_list():
    items = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 3)])
    items.append(nn.LayerNorm(3))
    assert len(items) == 3 and [type(m).__name__ for m in items] == ["Linear", "Linear", "LayerNorm"]
    assert items[-1] is items[2] and isinstance(items[:2], nn.ModuleList) and len(items[:2]) == 2
    assert [n for n, _ in items.named_parameters()] == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "2.gamma",
        "2.beta",
    ]
    with pytest.raises(TypeError, match="ModuleList: item 3 must be a Module, got int"):
        items.append(3)


def test_sequential():
    x = Tensor(np.ones((4, 2), np.float32))
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert net(x).shape == (4, 1)
    assert nn.Sequential(list(net))(x).numpy().tolist() == net(x).numpy().tolist()
    assert nn.Sequential()(x) is x
