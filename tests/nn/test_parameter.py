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


def test_buffers_are_saved_but_not_trained():
    class Shifted(nn.Module):
        def __init__(self):
            self.scale = nn.Parameter.new(nn.init.ones, (3,))
            self.shift = nn.Buffer.new(nn.init.constant(2.0), (3,))

    m = Shifted()
    assert m.parameters() == [m.scale] and m.num_parameters() == 3 and not m.shift.requires_grad
    assert list(m.state_dict()) == ["scale", "shift"] and [name for name, _ in m.named_buffers()] == ["shift"]
    m.load_state_dict({"scale": np.ones(3), "shift": np.array([4.0, 5.0, 6.0])})
    assert m.shift.tolist() == [4, 5, 6]
    wide = m.to("float64")
    assert isinstance(wide.shift, nn.Buffer) and wide.shift.dtype == "float64"
    with nn.init.skipped():
        empty = Shifted()
    assert (
        isinstance(empty.shift, nn.Buffer)
        and empty.shift.shape == (3,)
        and empty.shift.drawn().tolist() == [2, 2, 2]
    )
