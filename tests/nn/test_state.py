import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, ops
from toy_lstm import ToyLSTM

V, C = 11, 6
IDS = np.random.default_rng(1).integers(0, V, (3, 8))


def test_two_halves_with_a_state_are_the_whole():
    lm = ToyLSTM(V, C)
    whole, _ = lm(Tensor(IDS))
    first, state = lm(Tensor(IDS[:, :5]))
    second, _ = lm(Tensor(IDS[:, 5:]), state)
    np.testing.assert_array_equal(np.concatenate([first.numpy(), second.numpy()], 1), whole.numpy())


def test_tensors_out_and_in():
    _, state = ToyLSTM(V, C)(Tensor(IDS))
    assert list(state.tensors()) == ["h", "c"] and state.nbytes == 2 * 3 * C * 4 and state.batch == 3
    again = state.with_tensors({name: Tensor(t.numpy()) for name, t in state.tensors().items()})
    np.testing.assert_array_equal(again.h.numpy(), state.h.numpy())
    with pytest.raises(plm.ArgumentError, match="Recurrent: the tensors must be h, c, got h$"):
        state.with_tensors({"h": state.h})


def test_no_gradient_flows_through_a_detached_state():
    lm = ToyLSTM(V, C)
    grads = []
    for cut in (False, True):
        lm.zero_grad()
        _, state = lm(Tensor(IDS[:, :5]))
        logits, _ = lm(Tensor(IDS[:, 5:]), state.detach() if cut else state)
        ops.sum(logits).backward()
        grads.append(lm.gates.weight.grad.numpy())
    assert not np.allclose(*grads)
    lm.zero_grad()
    ops.sum(lm(Tensor(IDS[:, 5:]), state.detach())[0]).backward()
    np.testing.assert_array_equal(lm.gates.weight.grad.numpy(), grads[1])


def test_select():
    """The sequences that go on carry what their parents read."""
    lm = ToyLSTM(V, C)
    _, state = lm(Tensor(IDS))
    picked = state.select(Tensor(np.array([0, 2])), Tensor(np.zeros((2, 2), np.int64)))
    state = lm.cell(Tensor(np.array([[4, 5], [6, 7]])), picked)
    state = state.select(Tensor(np.array([1])), Tensor(np.array([[1, 1, 0]])))
    assert state.batch == 1
    expected = [lm(Tensor([[*IDS[2], t]]))[1].h.numpy()[0, 0] for t in (7, 7, 6)]
    np.testing.assert_allclose(state.h.numpy()[0], expected, atol=1e-6)


def test_a_state_of_another_batch_size():
    lm = ToyLSTM(V, C)
    _, state = lm(Tensor(IDS))
    with pytest.raises(
        plm.ShapeError, match="Recurrent: the state is of 3 sequences, the batch has 2: select"
    ):
        lm(Tensor(IDS[:2]), state)
