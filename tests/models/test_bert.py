import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models
from plmcore.models import names
from plmcore.models.bert import HEADS, Bert, BertConfig, BertMaskedLM

CFG = BertConfig(
    vocab_size=31, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17,
    max_position_embeddings=10, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)  # fmt: skip
BASE = BertConfig()
LARGE = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
rng = np.random.default_rng(0)
IDS = rng.integers(0, 31, (3, 7))
MASK = (np.arange(7) < np.array([7, 2, 4])[:, None]).astype(np.int64)


@pytest.mark.parametrize(
    "config, head, count",
    [
        (BASE, "base", 109_482_240),
        (BASE, "pretraining", 110_106_428),
        (LARGE, "base", 335_141_888),
        (LARGE, "pretraining", 336_226_108),
    ],
)
def test_published_counts(config, head, count):
    before = plm.memory_stats()["allocations"]
    assert models.count_parameters(config, head) == count
    assert plm.memory_stats()["allocations"] == before  # no weights were made


@pytest.mark.parametrize("head", HEADS)
def test_every_head_has_names_and_its_count(head):
    model = models.build(CFG, head)
    assert model.num_parameters() == models.count_parameters(CFG, head)
    written = names.published(models.bert, model)
    assert sum(t.size for t in written.values()) == model.num_parameters()
    assert (
        models.head_name(model) == head
        and models.head_of(CFG.replace(architectures=(models.architecture_of(CFG, head),))) == head
    )


def test_published_initialisation():
    plm.seed(0)
    model = BertMaskedLM(
        BertConfig(
            vocab_size=500, hidden_size=64, num_hidden_layers=1, num_attention_heads=4, intermediate_size=128
        )
    )
    for name, p in model.named_parameters():
        values = p.numpy()
        if name.endswith("bias") or name.endswith("beta"):
            assert not values.any(), name
        elif name.endswith("gamma"):
            assert (values == 1).all(), name
        else:  # a normal distribution of 0.02 cut at two of these
            assert np.abs(values).max() <= 0.04 and abs(values.std() - 0.0176) < 0.002, name
    assert not model.body.embeddings.tokens.weight.numpy()[0].any()
    assert model.predictions.decoder.weight is model.body.embeddings.tokens.weight


def test_padding_changes_nothing_and_leaves_zeros():
    model = Bert(CFG).eval()
    with plm.no_grad():
        out = model(Tensor(IDS), Tensor(MASK), output_hidden_states=True)
        alone = model(Tensor(IDS[1:2, :2].copy()))
        kept = model(Tensor(IDS), Tensor(MASK), output_attentions=True)
    for x in (out.last_hidden_state, *out.hidden_states):
        assert not x.numpy()[MASK == 0].any() and x.numpy()[MASK == 1].all()
    np.testing.assert_allclose(
        out.last_hidden_state.numpy()[1, :2], alone.last_hidden_state.numpy()[0], atol=1e-6
    )
    np.testing.assert_allclose(out.pooler_output.numpy()[1], alone.pooler_output.numpy()[0], atol=1e-6)
    np.testing.assert_allclose(kept.last_hidden_state.numpy(), out.last_hidden_state.numpy(), atol=1e-6)
    for w in kept.attentions:
        assert w.shape == (3, 3, 7, 7) and not w.numpy()[1, :, 2:].any() and not w.numpy()[1, :, :, 2:].any()
        np.testing.assert_allclose(w.numpy()[1, :, :2].sum(-1), 1, atol=1e-6)


def test_dropped_rows_cost_nothing():
    program = plm.trace(
        Bert(CFG).eval(), input_ids=plm.spec("int64", "B", "T"), attention_mask=plm.spec("int64", "B", "T")
    )
    products = [line for line in repr(program).splitlines() if " linear(" in line]
    assert len(products) == 9 and sum("[N" in line for line in products) >= 8  # all but the pooler's


def test_logits_of_labelled_positions_only():
    model = BertMaskedLM(CFG).eval()
    labels = np.full((3, 7), -100)
    labels[0, 3], labels[2, 1] = 4, 9
    with plm.no_grad():
        out = model(Tensor(IDS), attention_mask=Tensor(MASK), labels=Tensor(labels))
        assert "logits: computed when read" in repr(out)
        logits = out.logits.numpy()
        assert out.logits is out.logits and "logits: [3, 7, 31]" in repr(out)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    assert out.loss.item() == pytest.approx(-np.log(p[0, 3, 4] * p[2, 1, 9]) / 2, abs=1e-5)


def test_dropout_is_on_in_training_only():
    lm = plm.from_config(CFG.replace(hidden_dropout_prob=0.5), "masked-lm")
    x = [lm(input_ids=IDS).logits.numpy() for _ in range(2)]
    assert (x[0] != x[1]).any()
    lm.eval()
    assert (lm(input_ids=IDS).logits.numpy() == lm(input_ids=IDS).logits.numpy()).all()


def test_it_learns():
    plm.seed(1)
    lm = plm.from_config(CFG, "masked-lm")
    opt = plm.optim.AdamW(lm.parameters(), lr=0.01)
    losses = []
    for _ in range(60):
        opt.zero_grad()
        loss = lm(input_ids=IDS, attention_mask=MASK, labels=np.where(MASK == 1, IDS, -100)).loss
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[0] > 3 and losses[-1] < 0.3


@pytest.mark.parametrize("mask", [False, True])
def test_trace_runs_at_other_sizes(mask):
    model = BertMaskedLM(CFG).eval()
    specs = dict(input_ids=plm.spec("int64", "B", "T"), labels=plm.spec("int64", "B", "T"))
    if mask:
        specs["attention_mask"] = plm.spec("int64", "B", "T")
    with plm.no_grad():
        program = plm.trace(model, **specs)
        for B, T in ((1, 1), (4, 9), (2, 3)):
            inputs = {name: rng.integers(0, 31, (B, T)) for name in ("input_ids", "labels")}
            if mask:
                inputs["attention_mask"] = (np.arange(T) < rng.integers(1, T + 1, (B, 1))).astype(np.int64)
            got, want = program(**inputs), model(**{k: Tensor(v) for k, v in inputs.items()})
            assert set(got) == {"loss", "logits"}
            for field in got:
                np.testing.assert_allclose(got[field].numpy(), want[field].numpy(), atol=1e-5, err_msg=field)


@pytest.mark.parametrize(
    "inputs, error, message",
    [
        (dict(input_ids=np.zeros((1, 11), int)), ValueError, "the length 11 is more than the 10 positions"),
        (dict(input_ids=[[1, 31]]), IndexError, "31"),
        (dict(input_ids=[[1, -1]]), IndexError, "-1"),
        (
            dict(input_ids=[1, 2]),
            ValueError,
            r"input_ids must be whole numbers \[batch, length\], got int64 \[2\]",
        ),
        (dict(input_ids=[[0.5]]), ValueError, "input_ids must be whole numbers"),
        (
            dict(input_ids=[[1, 2], [1]]),
            ValueError,
            "input_ids: the lists must be numbers, and of equal lengths",
        ),
        (
            dict(input_ids=[[1, 2]], attention_mask=[[1, 0, 1]]),
            ValueError,
            r"attention_mask must be \[1, 2\] like input_ids, got \[1, 3\]",
        ),
        (
            dict(input_ids=[[1, 2]], token_type_ids=[[0]]),
            ValueError,
            r"token_type_ids must be \[1, 2\] like input_ids, got \[1, 1\]",
        ),
        (dict(input_ids=[[1, 2]], token_type_ids=[[0, 2]]), IndexError, "2"),
        (dict(input_ids=[[1, 2]], words=3), TypeError, "words"),
    ],
)
def test_wrong_inputs(inputs, error, message):
    with pytest.raises(error, match=message):
        plm.from_config(CFG)(**inputs)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(hidden_size="12"), r"BertConfig: hidden_size must be a whole number, got '12'"),
        (dict(hidden_size=True), "hidden_size must be a whole number, got True"),
        (dict(num_attention_heads=0), "num_attention_heads must be at least 1, got 0"),
        (dict(num_attention_heads=5), "hidden_size must be a multiple of num_attention_heads = 5, got 12"),
        (dict(hidden_act="quick_gelu"), "hidden_act must be one of gelu, .*got 'quick_gelu'"),
        (dict(hidden_dropout_prob=1), r"hidden_dropout_prob must be in \[0, 1\), got 1"),
        (dict(vocab_size=None), "vocab_size must be a whole number, got None"),
        (dict(num_labels=0), "num_labels must be at least 1, got 0"),
        (dict(add_cross_attention=True), "add_cross_attention must be one of False, got True"),
        (dict(position_embedding_type="relative_key"), "position_embedding_type"),
    ],
)
def test_wrong_configs(changes, message):
    with pytest.raises(ValueError, match=message):
        BertConfig.from_dict({**CFG.to_dict(), **changes})
