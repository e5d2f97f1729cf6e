import math

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models
from plmcore.models import names
from plmcore.models.gpt2 import GPT2, HEADS, GPT2CausalLM, GPT2Config

CFG = GPT2Config(
    vocab_size=31,
    n_embd=12,
    n_layer=2,
    n_head=3,
    n_inner=17,
    n_positions=10,
    pad_token_id=0,
    resid_pdrop=0.0,
    embd_pdrop=0.0,
    attn_pdrop=0.0,
    summary_first_dropout=0.0,
    classifier_dropout=0.0,
    initializer_range=0.4,
)
rng = np.random.default_rng(0)
IDS = rng.integers(1, 31, (3, 7))
RIGHT = (np.arange(7) < np.array([7, 2, 4])[:, None]).astype(np.int64)
HOLES = np.array([[1, 0, 1, 1, 0, 1, 1], [0, 1, 0, 0, 1, 1, 0], [1, 1, 1, 1, 1, 1, 1]])
MASKS = {"right": RIGHT, "left": RIGHT[:, ::-1].copy(), "holes": HOLES}


@pytest.mark.parametrize(
    "size, count",
    [
        (dict(), 124_439_808),
        (dict(n_layer=24, n_embd=1024, n_head=16), 354_823_168),
        (dict(n_layer=36, n_embd=1280, n_head=20), 774_030_080),
        (dict(n_layer=48, n_embd=1600, n_head=25), 1_557_611_200),
    ],
)
def test_published_counts(size, count):
    before = plm.memory_stats()["allocations"]
    assert models.count_parameters(GPT2Config(**size), "causal-lm") == count
    assert plm.memory_stats()["allocations"] == before  # no weights were made


@pytest.mark.parametrize("head", HEADS)
def test_every_head_has_names_and_its_count(head):
    model = models.build(CFG, head)
    assert model.num_parameters() == models.count_parameters(CFG, head)
    written = names.published(models.gpt2, model)
    assert sum(t.size for t in written.values()) == model.num_parameters()
    assert models.head_name(model) == head
    assert models.head_of(CFG.replace(architectures=(models.architecture_of(CFG, head),))) == head


def test_matrices_are_published_as_in_by_out():
    model = GPT2CausalLM(CFG)
    written = names.published(models.gpt2, model)
    up = model.body.blocks[0].mlp.up.weight.numpy()
    assert up.shape == (17, 12) and (written["transformer.h.0.mlp.c_fc.weight"].numpy() == up.T).all()
    assert written["transformer.h.1.attn.c_attn.weight"].shape == (12, 36)
    assert "lm_head.weight" not in written  # it is transformer.wte.weight


def test_published_initialisation():
    plm.seed(0)
    model = GPT2CausalLM(GPT2Config(vocab_size=500, n_embd=64, n_layer=8, n_head=4))
    for name, p in model.named_parameters():
        values = p.numpy()
        if name.endswith(("bias", "beta")):
            assert not values.any(), name
        elif name.endswith("gamma"):
            assert (values == 1).all(), name
        else:  # what is added to the stream is smaller by the square root of the number of additions
            std = 0.02 / math.sqrt(16) if name.endswith(("out.weight", "down.weight")) else 0.02
            assert abs(values.std() / std - 1) < 0.1 and np.abs(values).max() > 2.5 * std, name
    assert model.lm_head.weight is model.body.embeddings.tokens.weight


@pytest.mark.parametrize(
    "head, field",
    [("base", "last_hidden_state"), ("causal-lm", "logits"), ("token-classification", "logits")],
)
def test_the_future_does_not_change_a_bit(head, field):
    model = models.build(CFG, head).eval()
    with plm.no_grad():
        for t in range(1, 7):
            other = IDS.copy()
            other[:, t:] = rng.integers(1, 31, other[:, t:].shape)
            a, b = (model(Tensor(ids))[field].numpy() for ids in (IDS, other))
            assert (a[:, :t] == b[:, :t]).all() and (a[:, t:] != b[:, t:]).any(-1).any()


@pytest.mark.parametrize("side", MASKS)
def test_padding_changes_nothing_and_leaves_zeros(side):
    """Each text alone, at its positions, gives the same as in the batch."""
    model, mask = GPT2(CFG).eval(), MASKS[side]
    with plm.no_grad():
        out = model(Tensor(IDS), Tensor(mask), output_hidden_states=True)
        kept = model(Tensor(IDS), Tensor(mask), output_attentions=True)
        for x in (out.last_hidden_state, *out.hidden_states):
            assert not x.numpy()[mask == 0].any() and x.numpy()[mask == 1].all()
        np.testing.assert_allclose(kept.last_hidden_state.numpy(), out.last_hidden_state.numpy(), atol=1e-5)
        for b in range(3):
            at = np.flatnonzero(mask[b])
            alone = model(Tensor(IDS[b : b + 1, at]), position_ids=Tensor(at[None]), output_attentions=True)
            got = out.last_hidden_state.numpy()[b, at]
            np.testing.assert_allclose(got, alone.last_hidden_state.numpy()[0], atol=1e-5)
            for w, expected in zip(kept.attentions, alone.attentions):
                np.testing.assert_allclose(w.numpy()[b][:, at][:, :, at], expected.numpy()[0], atol=1e-5)
                assert not w.numpy()[b][:, mask[b] == 0].any() and not w.numpy()[b][:, :, mask[b] == 0].any()


def test_dropped_rows_cost_nothing():
    program = plm.trace(
        GPT2(CFG).eval(), input_ids=plm.spec("int64", "B", "T"), attention_mask=plm.spec("int64", "B", "T")
    )
    products = [line for line in repr(program).splitlines() if " linear(" in line]
    assert len(products) == 8 and all("[N" in line for line in products)


@pytest.mark.parametrize("side", [None, *MASKS])
def test_loss_is_that_of_the_next_token(side):
    model = GPT2CausalLM(CFG).eval()
    mask = np.ones_like(IDS) if side is None else MASKS[side]
    labels = np.where(mask == 1, IDS, -100)
    if side in ("left", "holes"):  # those predicted from a position that is padding: test_golden.py
        labels[:, 1:][mask[:, :-1] == 0] = -100
    with plm.no_grad():
        out = model(Tensor(IDS), attention_mask=Tensor(mask), labels=Tensor(labels))
        assert "logits: computed when read" in repr(out)
        logits = out.logits.numpy().astype(np.float64)
    logp = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    picked = [logp[b, t, labels[b, t + 1]] for b in range(3) for t in range(6) if labels[b, t + 1] != -100]
    assert len(picked) >= 6 and out.loss.item() == pytest.approx(-np.mean(picked), abs=1e-5)


def test_classification_reads_the_last_token_that_is_not_padding():
    model = models.build(CFG, "sequence-classification").eval()
    ids = np.array([[5, 6, 7, 0, 0], [0, 0, 8, 9, 4], [3, 0, 2, 0, 0], [0, 0, 0, 0, 0]])
    with plm.no_grad():
        logits = model(Tensor(ids)).logits.numpy()
        states = model.body(Tensor(ids)).last_hidden_state.numpy()
    expected = states[np.arange(4), [2, 4, 2, 0]] @ model.score.weight.numpy().T
    np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_double_heads():
    model = models.build(CFG, "double-heads").eval()
    ids, at = rng.integers(1, 31, (2, 3, 7)), np.array([[6, 2, 0], [1, 5, 3]])
    with plm.no_grad():
        out = model(Tensor(ids), mc_token_ids=Tensor(at), mc_labels=Tensor(np.array([2, 0])))
        states = model.body(Tensor(ids.reshape(6, 7))).last_hidden_state.numpy()
    assert out.logits.shape == (2, 3, 7, 31) and set(out) == {"logits", "mc_logits", "mc_loss"}
    chosen = states[np.arange(6), at.ravel()] @ model.choice.weight.numpy().T + model.choice.bias.numpy()
    np.testing.assert_allclose(out.mc_logits.numpy(), chosen.reshape(2, 3), atol=1e-5)
    z = chosen.reshape(2, 3).astype(np.float64)
    expected = np.mean(np.log(np.exp(z).sum(1)) - z[[0, 1], [2, 0]])
    assert out.mc_loss.item() == pytest.approx(expected, abs=1e-5)


def test_dropout_is_on_in_training_only():
    lm = plm.from_config(CFG.replace(attn_pdrop=0.5), "causal-lm")
    labels = np.where(MASKS["left"] == 1, IDS, -100)
    for inputs in (dict(input_ids=IDS), dict(input_ids=IDS, attention_mask=MASKS["left"], labels=labels)):
        x = [lm.train()(**inputs).logits.numpy() for _ in range(2)]
        assert (x[0] != x[1]).any()
        lm.eval()
        assert (lm(**inputs).logits.numpy() == lm(**inputs).logits.numpy()).all()


def test_it_learns():
    plm.seed(1)
    lm = plm.from_config(CFG.replace(initializer_range=0.02), "causal-lm")
    opt = plm.optim.AdamW(lm.parameters(), lr=0.01)
    losses = []
    for _ in range(150):
        opt.zero_grad()
        loss = lm(input_ids=IDS, attention_mask=RIGHT, labels=np.where(RIGHT == 1, IDS, -100)).loss
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[0] > 3 and losses[-1] < 0.3


@pytest.mark.parametrize("side", [None, *MASKS])
def test_trace_runs_at_other_sizes(side):
    model = GPT2CausalLM(CFG).eval()
    specs = {
        name: plm.spec("int64", "B", "T")
        for name in ("input_ids", "labels", *(["attention_mask"] if side else []))
    }
    with plm.no_grad():
        program = plm.trace(model, **specs)
        for B, T in ((1, 2), (3, 7), (2, 3)):
            inputs = {name: rng.integers(0, 31, (B, T)) for name in ("input_ids", "labels")}
            if side:
                inputs["attention_mask"] = MASKS[side][:B, :T].copy()
            got, want = program(**inputs), model(**{k: Tensor(v) for k, v in inputs.items()})
            assert set(got) == {"loss", "logits"}
            for field in got:
                np.testing.assert_allclose(got[field].numpy(), want[field].numpy(), atol=1e-5, err_msg=field)


@pytest.mark.parametrize(
    "head, inputs, error, message",
    [
        (
            "base",
            dict(input_ids=np.zeros((1, 11), int)),
            ValueError,
            "the length 11 is more than the 10 positions",
        ),
        ("base", dict(input_ids=[[1, 31]]), IndexError, "31"),
        (
            "base",
            dict(input_ids=[[1, 2]], attention_mask=[[1, 0, 1]]),
            ValueError,
            r"attention_mask must be \[1, 2\] like input_ids, got \[1, 3\]",
        ),
        (
            "base",
            dict(input_ids=[[1, 2]], token_type_ids=[[0]]),
            ValueError,
            r"token_type_ids must be \[1, 2\] like input_ids, got \[1, 1\]",
        ),
        ("base", dict(input_ids=[[1, 2]], position_ids=[[0, 10]]), IndexError, "10"),
        (
            "causal-lm",
            dict(input_ids=[[1, 2]], labels=[[1]]),
            ValueError,
            r"labels must be \[1, 2\] like input_ids, got \[1, 1\]",
        ),
        (
            "double-heads",
            dict(input_ids=[1, 2]),
            ValueError,
            r"input_ids must be \[batch, choices, length\] or \[choices, length\], got \[2\]",
        ),
        ("double-heads", dict(input_ids=[[1, 2]], mc_token_ids=[2]), IndexError, "2"),
        ("double-heads", dict(input_ids=[[1, 2]], mc_token_ids=[-3]), IndexError, "-3"),
    ],
)
def test_wrong_inputs(head, inputs, error, message):
    with pytest.raises(error, match=message):
        plm.from_config(CFG, head)(**inputs)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(n_embd="12"), "GPT2Config: n_embd must be a whole number, got '12'"),
        (dict(n_head=0), "n_head must be at least 1, got 0"),
        (dict(n_head=5), "n_embd must be a multiple of n_head = 5, got 12"),
        (dict(n_layer=0), "n_layer must be at least 1, got 0"),
        (dict(n_inner=0), "n_inner must be at least 1, got 0"),
        (dict(activation_function="mish"), "activation_function must be one of gelu, .*got 'mish'"),
        (dict(summary_type="attn"), "summary_type must be one of cls_index, last, first, mean, got 'attn'"),
        (dict(resid_pdrop=1.5), r"resid_pdrop must be in \[0, 1\), got 1.5"),
        (dict(add_cross_attention=True), "add_cross_attention must be one of False, got True"),
    ],
)
def test_wrong_configs(changes, message):
    with pytest.raises(ValueError, match=message):
        GPT2Config.from_dict({**CFG.to_dict(), **changes})
