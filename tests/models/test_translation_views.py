"""Auxiliary decoders of a translation model: what they predict, from what, and what learns."""

import numpy as np
import plmcore as plm
import pytest
from plmcore.models.translation_views import TranslationViews

SMALL = dict(
    model_type="rnn-seq2seq",
    vocab_size=20,
    d_embed=5,
    d_hidden=6,
    encoder_layers=1,
    decoder_layers=1,
    attention="general",
)
TARGETS = np.array([[7, 9, 12, 2], [5, 2, -100, -100]])


def views(**changes):
    plm.seed(0)
    return TranslationViews(plm.from_config({**SMALL, **changes}, "seq2seq-lm").model)


def batch():
    ids = np.random.default_rng(0).integers(3, 20, (2, 6))
    ids[1, 4:] = 1
    return plm.Tensor(ids), plm.Tensor((ids != 1).astype(np.int64))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("attention", ["general", "dot", "concat"])
def test_what_each_decoder_predicts(attention):
    """By the formulas, from the primary decoder's states: the token, and the one after it."""
    model = views(attention=attention).eval()
    ids, mask = batch()
    found = model.unlabelled_sums(ids, mask, plm.Tensor(TARGETS))
    out = model(input_ids=ids, attention_mask=mask, labels=plm.Tensor(TARGETS))
    states, source = out.decoder_states.numpy()[:, 1:], out.encoder_last_hidden_state.numpy()
    for view, ahead in (("attention", 0), ("future", 1)):
        p = {name: value.numpy() for name, value in model.auxiliary[view].state_dict().items()}
        total = 0.0
        for b, (n, length) in enumerate(((4, 6), (2, 4))):
            s, h = states[b], source[b, :length]
            if attention == "concat":
                both = [[np.concatenate([x, y]) for y in h] for x in s]
                scores = np.tanh(np.array(both) @ p["attn.W_a"].T) @ p["attn.v_a"]
            else:
                scores = s @ (p["attn.W_a"] @ h.T if attention == "general" else h.T)
            seen = np.concatenate([softmax(scores) @ h, s], 1)
            probabilities = softmax(np.tanh(seen @ p["attn.W_c"].T) @ p["out.W_s"].T + p["out.b_s"])
            tokens = TARGETS[b, ahead:n]
            total -= np.log([probabilities[t, token] for t, token in enumerate(tokens)]).mean()
        np.testing.assert_allclose(found[view].item(), total, rtol=1e-5)


def test_no_gradient_reaches_the_primary_attention_and_output():
    model = views()
    ids, mask = batch()
    sums = model.unlabelled_sums(ids, mask, plm.Tensor(TARGETS))
    plm.ops.add(sums["attention"], sums["future"]).backward()
    without = {name.partition(".")[0] for name, p in model.primary.named_parameters() if p.grad is None}
    assert without == {"attn", "out"}
    assert all(p.grad is not None for p in model.auxiliary.parameters())
    assert model.primary.decoder.rnn.weight_hh_l0.grad is not None


def test_only_one_view_loses_weights_of_its_attention():
    model = views()
    ids, mask = batch()
    drawn = [model.unlabelled_sums(ids, mask, plm.Tensor(TARGETS)) for _ in range(3)]
    assert len({x["attention"].item() for x in drawn}) == 3 and len({x["future"].item() for x in drawn}) == 1
    still = [
        model.eval().unlabelled_sums(ids, mask, plm.Tensor(TARGETS))["attention"].item() for _ in range(2)
    ]
    assert still[0] == still[1]


@pytest.mark.parametrize(
    "changes", [dict(attention="none"), dict(attention="bahdanau"), dict(input_feeding=True)]
)
def test_decoders_that_depend_on_their_attention(changes):
    with pytest.raises(
        plm.ArgumentError, match="needs a decoder whose states do not depend on its attention"
    ):
        views(**changes)
