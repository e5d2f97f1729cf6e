import numpy as np
import plmcore as plm
import pytest
from plmcore import nn
from plmcore.nn import sampled

V, C, S, N = 60, 5, 12, 7
RNG = np.random.default_rng(4)
X, LABELS = RNG.normal(size=(N, C)).astype(np.float32), np.array([0, 1, 1, 30, 59, 3, 0])


def layer(samples=S):
    plm.seed(1)
    return nn.SampledSoftmax(C, V, samples)


def probability(k):
    return np.log((k + 2) / (k + 1)) / np.log(V + 1)


def test_draws_are_log_uniform_and_each_once():
    plm.seed(7)
    assert np.isclose(probability(np.arange(V)).sum(), 1)
    counts, expected = np.zeros(V), np.zeros(V)
    for _ in range(3000):
        classes, tries = sampled.draw(V, S)
        assert len(set(classes.tolist())) == S and tries >= S and 0 <= classes.min() <= classes.max() < V
        counts[classes] += 1
        expected += 1 - (1 - probability(np.arange(V))) ** tries
    spread = np.sqrt(expected)
    assert (
        np.abs(counts - expected).max() < 6 * spread.max()
        and np.abs(counts - expected).mean() < 1.5 * spread.mean()
    )
    assert counts[0] > 4 * counts[40] > 0


def test_expected_counts():
    found = sampled.expected(np.array([0, 5, 59]), V, 20)
    assert np.allclose(found, 1 - (1 - probability(np.array([0, 5, 59]))) ** 20)


def test_the_loss_is_that_of_the_label_among_those_drawn():
    soft = layer()
    plm.seed(3)
    drawn, tries = sampled.draw(V, S)
    plm.seed(3)
    found = soft(plm.Tensor(X), plm.Tensor(LABELS)).item()
    w, b = soft.weight.numpy().astype(np.float64), soft.bias.numpy()
    assert set(LABELS) & set(drawn.tolist())  # some are drawn and right at once
    total = 0.0
    for x, y in zip(X.astype(np.float64), LABELS):
        classes = [y, *(k for k in drawn if k != y)]
        expected = 1 - (1 - probability(np.array(classes))) ** tries
        logits = w[classes] @ x + b[classes] - np.log(expected)
        total += np.log(np.exp(logits - logits[0]).sum())
    assert np.isclose(found, total / N, rtol=1e-5)


def test_eval_mode_and_small_vocabularies_have_the_whole_softmax():
    for soft in (layer().eval(), layer(samples=V)):
        logits = soft.logits(plm.Tensor(X)).numpy().astype(np.float64)
        wanted = np.mean(np.log(np.exp(logits).sum(1)) - logits[np.arange(N), LABELS])
        assert np.isclose(soft(plm.Tensor(X), plm.Tensor(LABELS)).item(), wanted, rtol=1e-6)


def test_gradients_reach_the_rows_that_were_used():
    soft, x = layer(), plm.Tensor(X, requires_grad=True)
    plm.seed(3)
    drawn, _ = sampled.draw(V, S)
    plm.seed(3)
    soft(x, plm.Tensor(LABELS)).backward()
    used = {*drawn.tolist(), *LABELS.tolist()}
    opt = plm.optim.Adagrad(soft.parameters(), lr=0.1, start=0.1)
    before = soft.weight.numpy().copy()
    opt.step()
    moved = np.flatnonzero(np.abs(soft.weight.numpy() - before).sum(1))
    assert set(moved.tolist()) == used and np.abs(x.grad.numpy()).sum() > 0


def test_learning_with_samples_lowers_the_whole_loss():
    soft = layer()
    x, y = plm.Tensor(X), plm.Tensor(LABELS)
    opt = plm.optim.Adagrad(soft.parameters(), lr=0.5, start=0.1)
    first = soft.eval()(x, y).item()
    soft.train()
    for _ in range(60):
        opt.zero_grad()
        soft(x, y).backward()
        opt.step()
    assert soft.eval()(x, y).item() < 0.3 * first


def test_bad_input():
    with pytest.raises(plm.ArgumentError, match="there is no class 60; there are 60"):
        layer()(plm.Tensor(X), plm.Tensor(LABELS + 1))
    with pytest.raises(plm.ArgumentError, match="samples must be at least 1"):
        layer(0)
