import numpy as np
import pytest
from plmcore import Tensor, losses

rng = np.random.default_rng(0)
a, b = rng.standard_normal((2, 4, 7)).astype(np.float32), rng.standard_normal((2, 4, 7)).astype(np.float32)


def log_softmax(x):
    x = x.astype(np.float64)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def check(loss, *args, expected, **kwargs):
    for reduction, value in (("none", expected), ("sum", expected.sum()), ("mean", expected.mean())):
        np.testing.assert_allclose(
            loss(*map(Tensor, args), reduction=reduction, **kwargs).numpy(), value, rtol=2e-5, atol=1e-6
        )


def test_mse():
    check(losses.mse, a, b, expected=(a - b) ** 2)


def test_binary_cross_entropy_with_logits():
    target = (b > 0).astype(np.float32)
    x = a.astype(np.float64)
    check(losses.binary_cross_entropy_with_logits, a, target, expected=np.logaddexp(0, x) - x * target)


def test_binary_cross_entropy_at_large_logits():
    x = Tensor(np.array([1e4, -1e4], np.float32), requires_grad=True)
    loss = losses.binary_cross_entropy_with_logits(x, Tensor(np.array([0.0, 1.0], np.float32)))
    assert loss.item() == 1e4
    loss.backward()
    assert x.grad.numpy().tolist() == [0.5, -0.5]


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_kl_div(temperature):
    p, q = log_softmax(b / temperature), log_softmax(a / temperature)
    check(losses.kl_div, a, b, temperature=temperature, expected=(np.exp(p) * (p - q)).sum(-1))


def test_kl_div_of_equals_is_zero():
    assert abs(losses.kl_div(Tensor(a), Tensor(a)).item()) < 1e-6


def test_cross_entropy():
    labels = rng.integers(0, 7, (2, 4))
    labels[0, 1] = -100
    picked = -np.take_along_axis(log_softmax(a), np.maximum(labels, 0)[..., None], -1)[..., 0]
    used = labels >= 0
    assert losses.cross_entropy(Tensor(a), Tensor(labels)).item() == pytest.approx(
        picked[used].mean(), rel=1e-5
    )
    np.testing.assert_allclose(
        losses.cross_entropy(Tensor(a), Tensor(labels), reduction="none").numpy(),
        np.where(used, picked, 0),
        rtol=1e-5,
    )


def test_unknown_reduction():
    with pytest.raises(ValueError, match="reduction must be 'mean', 'sum' or 'none', got 'average'"):
        losses.mse(Tensor(a), Tensor(b), reduction="average")
