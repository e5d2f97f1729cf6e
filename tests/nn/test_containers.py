import numpy as np
import plmcore as plm
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


def test_modules_by_name():
    parts = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.Linear(3, 1)})
    assert [name for name, _ in parts.named_parameters()] == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert list(parts) == list(parts.keys()) == ["a", "b"] and len(parts) == 2
    assert parts["b"] is dict(parts.items())["b"] is list(parts.values())[1]
    assert "a" in parts and "c" not in parts
    for wrong in ({"a.b": nn.Linear(1, 1)}, {"": nn.Linear(1, 1)}, {"a": 3}):
        with pytest.raises(plm.KindError, match="must be a name without dots, of a Module"):
            nn.ModuleDict(wrong)
