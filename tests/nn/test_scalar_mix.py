import numpy as np
import plmcore as plm
import pytest
from plmcore import nn

RNG = np.random.default_rng(3)


def states(n=3):
    return [RNG.normal(size=(2, 4, 5)).astype(np.float64) for _ in range(n)]


def softmax(w):
    return np.exp(w - w.max()) / np.exp(w - w.max()).sum()


def mixed(mix, given, mask=None):
    return mix([plm.Tensor(h) for h in given], None if mask is None else plm.Tensor(mask)).numpy()


def with_weights(layers, layer_norm=False):
    mix = nn.ScalarMix(layers, layer_norm).to("float64")
    mix.load_state_dict(
        {"scalars": plm.Tensor(np.arange(layers) * 0.7), "gamma": plm.Tensor(np.array([1.3]))}
    )
    return mix


def test_begins_as_the_mean():
    given = states()
    assert np.allclose(mixed(nn.ScalarMix(3).to("float64"), given), np.mean(given, 0))


def test_weights_and_gamma():
    given, shares = states(), softmax(np.arange(3) * 0.7)
    wanted = 1.3 * sum(s * h for s, h in zip(shares, given))
    assert np.allclose(mixed(with_weights(3), given), wanted, atol=1e-14)


@pytest.mark.parametrize("masked", [False, True])
def test_layer_norm_is_of_the_whole_tensor(masked):
    given, shares = states(), softmax(np.arange(3) * 0.7)
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]]) if masked else np.ones((2, 4), int)
    wanted = 0.0
    for share, h in zip(shares, given):
        seen = h[mask == 1]
        wanted = wanted + 1.3 * share * (h - seen.mean()) / np.sqrt(seen.var() + 1e-12)
    found = mixed(with_weights(3, layer_norm=True), given, mask if masked else None)
    assert np.allclose(found[mask == 1], wanted[mask == 1], atol=1e-12)


def test_gradients_and_penalty():
    mix = with_weights(2)
    loss = plm.ops.sum(mix([plm.Tensor(h) for h in states(2)])) + mix.penalty()
    loss.backward()
    assert np.abs(mix.scalars.grad.numpy()).sum() > 0 and np.isclose(mix.penalty().item(), 0.49)


def test_bad_input():
    with pytest.raises(plm.ArgumentError, match="2 layers are mixed, got 3"):
        nn.ScalarMix(2)([plm.Tensor(h) for h in states()])
    with pytest.raises(plm.ArgumentError, match="at least one layer"):
        nn.ScalarMix(0)
