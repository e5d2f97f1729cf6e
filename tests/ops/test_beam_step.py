import numpy as np
import pytest
from optest import OpSpec
from plmcore import Tensor, _core, ops


def log_softmax(x):
    top = x.max(-1, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(-1, keepdims=True))


def beam_step(logits, scores, n):
    B, V = scores.shape[0], logits.shape[1]
    values = (scores.reshape(-1, 1) + log_softmax(logits)).reshape(B, scores.shape[1] * V)
    best = np.argsort(-values, axis=1, kind="stable")[:, :n]
    return np.take_along_axis(values, best, 1), best // V, best % V


def apart(rows, V):
    """Logits whose order float32 keeps: no two are closer than 1e-4."""
    return np.stack([np.random.default_rng(r).permutation(V) * 1e-4 for r in range(rows)])


spec = OpSpec(
    op=ops.beam_step,
    ref=beam_step,
    cases=[
        dict(logits=(6, 37), scores=(2, 3), n=6),
        dict(logits=(12, 37), scores=(4, 3), n=6),
        dict(logits=(1, 5003), scores=(1, 1), n=1),
        dict(logits=(4, 2100), scores=(1, 4), n=9),
        dict(logits=(6, 5), scores=(3, 2), n=7),
        dict(logits=(6, 5), scores=(3, 2), n=10),
        dict(logits=(0, 5), scores=(0, 2), n=3),
        dict(logits=(6, 5), scores=(3, 2), n=0),
        dict(logits=apart(2, 30000), scores=(2, 1), n=3000),
    ],
    dims={"logits": "B*3 37", "scores": "B 3"},
    errors=[
        (
            dict(logits=(6, 5), scores=(3, 2), n=11),
            r"beam_step: n must be at most the 10 candidates \(K \* V\), got 11",
        ),
        (
            dict(logits=(6, 5), scores=(2, 2), n=1),
            r"beam_step: logits must be \[B \* K, V\] and scores \[B, K\]",
        ),
        (
            dict(logits=(6, 5), scores=np.zeros((3, 2)), n=1),
            r"scores must be float32 for float32 logits, got float64\[3, 2\]",
            TypeError,
        ),
        (
            dict(logits=np.zeros((6, 5), int), scores=(3, 2), n=1),
            r"beam_step: needs a float dtype",
            TypeError,
        ),
    ],
    dtypes=("float64", "float32"),
    bench=dict(logits=(16, 50257), scores=(4, 4), n=8),
    torch=lambda t, logits, scores, n: t.topk(
        (t.log_softmax(logits, -1) + scores.reshape(-1, 1)).reshape(scores.shape[0], -1), n
    ),
)
test_all = spec.tests()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_logits(dtype):
    logits = Tensor(np.random.default_rng(0).standard_normal((6, 300)), dtype=dtype)
    scores = np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)
    values, beams, tokens = ops.beam_step(logits, scores, 5)
    expected = beam_step(logits.numpy().astype(np.float64), scores, 5)
    np.testing.assert_allclose(values.numpy(), expected[0], rtol=1e-5)
    assert np.array_equal(beams.numpy() * 300 + tokens.numpy(), expected[1] * 300 + expected[2])


def test_of_equals_the_lower_beam_and_token_come_first():
    logits = np.zeros((4, 20), np.float32)
    logits[:, [3, 7]] = 1
    _, beams, tokens = ops.beam_step(logits, np.zeros((2, 2), np.float32), 7)
    assert beams.numpy().tolist() == [[0, 0, 1, 1, 0, 0, 0]] * 2
    assert tokens.numpy().tolist() == [[3, 7, 3, 7, 0, 1, 2]] * 2


def test_dead_beams_and_banned_tokens():
    inf = np.inf
    logits = np.zeros((3, 4), np.float32)
    logits[0, 1:] = -inf
    scores, beams, tokens = ops.beam_step(logits, np.array([[0, -inf, -1]], np.float32), 7)
    assert beams.numpy().tolist() == [[0, 2, 2, 2, 2, 0, 0]]
    assert tokens.numpy().tolist() == [[0, 0, 1, 2, 3, 1, 2]]
    assert scores.numpy()[0, 0] == 0 and np.isneginf(scores.numpy()[0, 5:]).all()


def test_nan_comes_last_and_is_not_hidden():
    logits = np.zeros((3, 40), np.float32)
    logits[0, 5] = np.nan  # its whole row is NaN
    logits[1] = -np.inf  # and so is the log-softmax of nothing
    scores, beams, tokens = ops.beam_step(logits, np.zeros((1, 3), np.float32), 43)
    assert beams.numpy()[0].tolist() == [2] * 40 + [0] * 3
    assert tokens.numpy()[0].tolist() == [*range(40), 0, 1, 2]
    assert np.isnan(scores.numpy()[0, 40:]).all()


def test_no_buffer_of_the_size_of_the_logits():
    logits = Tensor(np.zeros((64, 50000), np.float32))
    before = _core.memory_stats()["in_use"]
    _core.reset_peak_memory()
    ops.beam_step(logits, np.zeros((16, 4), np.float32), 8)
    assert _core.memory_stats()["peak"] - before < 1 << 20
