"""Starts, ends and whether there is an answer, against the same in NumPy."""

import numpy as np
import plmcore as plm
import pytest
from plmcore.models.xlnet import XLNetConfig

K, E, B, T, C = 3, 2, 4, 7, 12
CFG = XLNetConfig(
    vocab_size=31,
    d_model=C,
    n_layer=2,
    n_head=2,
    d_inner=20,
    dropout=0.0,
    initializer_range=0.3,
    start_n_top=K,
    end_n_top=E,
)
rng = np.random.default_rng(0)
IDS = rng.integers(0, 31, (B, T))
AT = dict(start_positions=np.array([0, 3, 6, 2]), end_positions=np.array([1, 3, 6, 5]))
CLS = dict(cls_index=np.array([6, 5, 0, 6]), is_impossible=np.array([0.0, 1, 1, 0], np.float32))
P_MASK = (np.arange(T) == 4) | (np.arange(T)[None] == np.array([1, 5, 2, 0])[:, None])


@pytest.fixture(scope="module")
def lm():
    plm.seed(0)
    return plm.from_config(CFG, "answer-beams", dtype="float64").eval()


@pytest.fixture(scope="module")
def states(lm):
    return lm.model.body(plm.Tensor(IDS)).last_hidden_state.numpy()


def layer(lm, name, x):
    p = {n.rpartition(".")[2]: v.numpy() for n, v in lm.named_parameters() if n.rpartition(".")[0] == name}
    return x @ p["weight"].T + p.get("bias", 0)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def starts(lm, x, hidden):
    return np.where(hidden, -1e30, layer(lm, "start", x)[..., 0])


def ends(lm, x, begin, hidden):
    """begin [B, C] -> [B, T]"""
    h = np.tanh(layer(lm, "end_hidden", np.concatenate([x, np.broadcast_to(begin[:, None], x.shape)], -1)))
    norm = {n: lm.model.end_norm.state_dict()[n].numpy() for n in ("gamma", "beta")}
    h = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + CFG.layer_norm_eps)
    return np.where(hidden, -1e30, layer(lm, "end", h * norm["gamma"] + norm["beta"])[..., 0])


def no_answer(lm, begin, text):
    return layer(lm, "answer", np.tanh(layer(lm, "answer_hidden", np.concatenate([begin, text], -1))))[:, 0]


@pytest.mark.parametrize("hidden", [None, P_MASK], ids=["anywhere", "p_mask"])
def test_beams(lm, states, hidden):
    out = lm(input_ids=IDS, **({} if hidden is None else dict(p_mask=hidden.astype(np.float64))))
    hidden = False if hidden is None else hidden
    p = softmax(starts(lm, states, hidden))
    best = np.argsort(-p, 1)[:, :K]
    np.testing.assert_array_equal(out.start_top_index.numpy(), best)
    np.testing.assert_allclose(out.start_top_log_probs.numpy(), np.take_along_axis(p, best, 1), atol=1e-12)
    for k in range(K):
        q = softmax(ends(lm, states, states[np.arange(B), best[:, k]], hidden))
        last = np.argsort(-q, 1)[:, :E]
        np.testing.assert_array_equal(out.end_top_index.numpy()[:, k::K], last)
        np.testing.assert_allclose(
            out.end_top_log_probs.numpy()[:, k::K], np.take_along_axis(q, last, 1), atol=1e-12
        )
    expected = no_answer(lm, np.einsum("bt,btc->bc", p, states), states[:, -1])
    np.testing.assert_allclose(out.cls_logits.numpy(), expected, atol=1e-12)
    if hidden is not False:
        assert not hidden[np.arange(B)[:, None], out.end_top_index.numpy()].any()


@pytest.mark.parametrize("answerable", [False, True])
def test_loss(lm, states, answerable):
    out = lm(input_ids=IDS, **AT, **(CLS if answerable else {}))
    begin = states[np.arange(B), AT["start_positions"]]

    def nll(logits, at):
        return -np.log(softmax(logits)[np.arange(B), at]).mean()

    expected = (
        nll(starts(lm, states, False), AT["start_positions"])
        + nll(ends(lm, states, begin, False), AT["end_positions"])
    ) / 2
    if answerable:
        z, truth = no_answer(lm, begin, states[np.arange(B), CLS["cls_index"]]), CLS["is_impossible"]
        expected += 0.5 * np.mean(np.log1p(np.exp(-z)) + (1 - truth) * z)
    np.testing.assert_allclose(out.loss.item(), expected, atol=1e-10)
    assert "start_top_index" not in out and "cls_logits" not in out
    out.loss.backward()
    reached = {n for n, p in lm.named_parameters() if p.grad is not None and p.grad.numpy().any()}
    assert ("answer.weight" in reached) == answerable and {
        "start.weight",
        "end.weight",
        "end_hidden.bias",
    } <= reached
    lm.model.zero_grad()


def test_errors(lm):
    with pytest.raises(IndexError, match="7"):
        lm(input_ids=IDS, **{**AT, "start_positions": np.full(B, T)})
    with pytest.raises(ValueError, match="k"):
        lm(input_ids=IDS[:, : K - 1])
    with pytest.raises(ValueError, match="start_n_top must be at least 1, got 0"):
        CFG.replace(start_n_top=0)


def test_trace_runs_at_other_sizes(lm):
    program = plm.trace(lm.model, input_ids=plm.spec("int64", "B", "T"))
    for shape in ((2, 5), (1, 9)):
        ids = rng.integers(0, 31, shape)
        got, want = program(input_ids=ids), lm(input_ids=ids)
        for name in ("start_top_index", "end_top_index", "end_top_log_probs", "cls_logits"):
            np.testing.assert_allclose(got[name].numpy(), want[name].numpy(), atol=1e-12)
