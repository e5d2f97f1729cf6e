import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, nn


class Block(nn.Module):
    def __init__(self):
        self.lin = nn.Linear(3, 3)
        self.norm = nn.LayerNorm(3)


class Net(nn.Module):
    """No call of super().__init__(), a shared weight, a plain parameter, a constant."""

    def __init__(self):
        self.tokens = nn.Embedding(5, 3)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.scale = nn.Parameter(np.ones((), np.float32))
        self.table = Tensor(np.arange(3, dtype=np.float32))
        self.ids = Tensor(np.arange(3))
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.tokens.weight

    def __call__(self, x):
        return x


NAMES = ["scale", "tokens.weight"] + [
    f"blocks.{i}.{n}" for i in (0, 1) for n in ("lin.weight", "lin.bias", "norm.gamma", "norm.beta")
]


def test_names():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == NAMES
    assert len(net.parameters()) == len(NAMES)
    assert net.num_parameters() == 1 + 15 + 2 * (9 + 3 + 3 + 3)
    assert [n for n, _ in net.named_modules()] == [
        "",
        "tokens",
        "blocks",
        "blocks.0",
        "blocks.0.lin",
        "blocks.0.norm",
        "blocks.1",
        "blocks.1.lin",
        "blocks.1.norm",
        "head",
    ]


def test_state_dict_round_trip(tmp_path):
    a, b = Net(), Net()
    assert list(a.state_dict()) == NAMES
    np.savez(tmp_path / "w.npz", **a.state_dict())
    with np.load(tmp_path / "w.npz") as state:
        assert b.load_state_dict(dict(state)) == ([], [])
    for (n, p), q in zip(a.named_parameters(), b.parameters()):
        assert p.numpy().tobytes() == q.numpy().tobytes(), n
    assert b.head.weight is b.tokens.weight


def test_state_dict_shares_memory_and_loading_does_not():
    a, b = Net(), Net()
    state = a.state_dict()
    b.load_state_dict(state)
    state["scale"].numpy()[...] = 7
    assert a.scale.item() == 7 and b.scale.item() == 1


def test_load_converts_the_dtype():
    net = nn.Linear(2, 2)
    net.load_state_dict({"weight": np.eye(2), "bias": np.zeros(2, np.float16)})
    assert net.weight.dtype == "float32" and net.weight.numpy().tolist() == [[1, 0], [0, 1]]


def test_strict_errors_list_names_and_change_nothing():
    net = Net()
    state = {n: np.full(v.shape, 9.0) for n, v in net.state_dict().items()}
    del state["scale"], state["blocks.1.lin.bias"]
    state["other"] = np.zeros(1)
    with pytest.raises(
        ValueError,
        match=r"Net: the state does not fit; missing: scale, blocks.1.lin.bias; unexpected: other$",
    ):
        net.load_state_dict(state)
    assert not (net.tokens.weight.numpy() == 9).any()
    assert net.load_state_dict(state, strict=False) == (["scale", "blocks.1.lin.bias"], ["other"])
    assert (net.tokens.weight.numpy() == 9).all() and net.scale.item() == 1
    with pytest.raises(ValueError, match=r"wrong shape: tokens.weight \[5\], expected \[5, 3\]"):
        net.load_state_dict({"tokens.weight": np.zeros(5)}, strict=False)


def test_train_and_eval():
    net = Net()
    assert all(m.training for m in net.modules())
    assert net.eval() is net and not any(m.training for m in net.modules())
    net.train()
    assert all(m.training for m in net.modules())


def test_freezing():
    net = Net()
    net.blocks[0].requires_grad_(False)
    assert [n for n, p in net.named_parameters() if not p.requires_grad] == NAMES[2:6]
    net.requires_grad_()
    assert all(p.requires_grad for p in net.parameters())


def test_apply():
    seen = []
    assert isinstance(Net().apply(lambda m: seen.append(type(m).__name__)), Net)
    assert seen.count("Linear") == 3


def test_to():
    net = Net().to("bfloat16")
    assert {p.dtype for p in net.parameters()} == {"bfloat16"} and all(
        p.requires_grad for p in net.parameters()
    )
    assert net.head.weight is net.tokens.weight
    assert (net.table.dtype, net.ids.dtype) == ("bfloat16", "int64")
    net.to("float32")
    assert {p.dtype for p in net.parameters()} == {"float32"}


def test_to_keeps_frozen_parameters_frozen():
    net = nn.Linear(2, 2).requires_grad_(False).to("float64")
    assert not net.weight.requires_grad


def test_a_list_of_modules_is_an_error():
    class Wrong(nn.Module):
        def __init__(self):
            self.layers = [nn.Linear(2, 2)]

    with pytest.raises(TypeError, match="Wrong.layers is a plain list of modules.*use nn.ModuleList"):
        Wrong().parameters()


def test_repr():
    assert repr(nn.Sequential(nn.Linear(2, 3, activation="relu"), nn.Dropout(0.5))) == (
        "Sequential(\n  (0): Linear(weight: [3, 2], bias: [3], relu)\n  (1): Dropout(p=0.5)\n)"
    )
    assert "(blocks): ModuleList(\n    (0): Block(\n      (lin): Linear(" in repr(Net())


def test_zero_grad():
    net = nn.Linear(2, 2)
    net.weight.grad = plm.Tensor(np.ones((2, 2), np.float32))
    net.zero_grad()
    assert net.weight.grad is None


def test_whole_numbers_are_no_weights():
    net = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="the state does not fit; not floating point: bias int64"):
        net.load_state_dict({"weight": np.eye(2), "bias": np.zeros(2, np.int64)})
