import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models
from plmcore.models import names
from plmcore.models.distilbert import HEADS, DistilBert, DistilBertConfig, DistilBertMaskedLM

CFG = DistilBertConfig(
    vocab_size=31, dim=12, n_layers=2, n_heads=3, hidden_dim=17, max_position_embeddings=10,
    dropout=0.0, attention_dropout=0.0, qa_dropout=0.0, seq_classif_dropout=0.0,
)  # fmt: skip
rng = np.random.default_rng(0)
IDS = rng.integers(0, 31, (3, 7))
MASK = (np.arange(7) < np.array([7, 2, 4])[:, None]).astype(np.int64)


def test_published_count():
    before = plm.memory_stats()["allocations"]
    assert models.count_parameters(DistilBertConfig(), "masked-lm") == 66_985_530
    assert plm.memory_stats()["allocations"] == before  # no weights were made


@pytest.mark.parametrize("head", HEADS)
def test_every_head_has_names_and_its_count(head):
    model = models.build(CFG, head)
    assert model.num_parameters() == models.count_parameters(CFG, head)
    written = names.published(models.distilbert, model)
    assert sum(t.size for t in written.values()) == model.num_parameters()
    published = models.architecture_of(CFG, head)
    assert models.head_name(model) == head and models.head_of(CFG.replace(architectures=(published,))) == head


def test_published_initialisation():
    plm.seed(0)
    model = DistilBertMaskedLM(
        CFG.replace(vocab_size=500, dim=64, n_heads=4, hidden_dim=128, max_position_embeddings=99)
    )
    for name, p in model.named_parameters():
        values = p.numpy()
        if name.endswith("bias") or name.endswith("beta"):
            assert not values.any(), name
        elif name.endswith("gamma"):
            assert (values == 1).all(), name
        else:
            assert abs(values.std() - 0.02) < 0.001 and np.abs(values).max() > 0.05, name  # not cut
    assert not model.body.embeddings.tokens.weight.numpy()[0].any()
    assert model.predictions.decoder.weight is model.body.embeddings.tokens.weight


def test_sinusoids():
    positions = DistilBert(CFG.replace(sinusoidal_pos_embds=True)).embeddings.positions.weight.numpy()
    assert positions.shape == (10, 12)
    for p, column, value in (
        (0, 0, 0.0),
        (0, 1, 1.0),
        (3, 0, np.sin(3)),
        (3, 1, np.cos(3)),
        (7, 4, np.sin(7 / 10000 ** (4 / 12))),
    ):
        assert positions[p, column] == pytest.approx(value, abs=1e-6)


def test_padding_changes_nothing_and_leaves_zeros():
    model = DistilBert(CFG).eval()
    with plm.no_grad():
        out = model(Tensor(IDS), Tensor(MASK), output_hidden_states=True)
        alone = model(Tensor(IDS[1:2, :2].copy()))
    assert len(out.hidden_states) == 3 and out.pooler_output is None
    for x in (out.last_hidden_state, *out.hidden_states):
        assert not x.numpy()[MASK == 0].any() and x.numpy()[MASK == 1].all()
    np.testing.assert_allclose(
        out.last_hidden_state.numpy()[1, :2], alone.last_hidden_state.numpy()[0], atol=1e-6
    )


@pytest.mark.parametrize(
    "head, key",
    [
        ("base", "dropout"),
        ("base", "attention_dropout"),
        ("sequence-classification", "seq_classif_dropout"),
        ("token-classification", "dropout"),
        ("question-answering", "qa_dropout"),
    ],
)
def test_each_dropout_is_on_in_training_only(head, key):
    lm = plm.from_config(CFG.replace(**{key: 0.5}), head)
    field = {"base": "last_hidden_state", "question-answering": "start_logits"}.get(head, "logits")

    def runs():
        return [lm(input_ids=IDS)[field].numpy() for _ in range(2)]

    a, b = runs()
    assert (a != b).any()
    lm.eval()
    a, b = runs()
    assert (a == b).all()


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


@pytest.mark.parametrize("head", HEADS)
def test_trace_runs_at_other_sizes(head):
    model = models.build(CFG, head).eval()
    shape = ("B", 3, "T") if head == "multiple-choice" else ("B", "T")
    specs = dict(input_ids=plm.spec("int64", *shape), attention_mask=plm.spec("int64", *shape))
    with plm.no_grad():
        program = plm.trace(model, **specs)
        for B, T in ((1, 1), (4, 9), (2, 3)):
            sizes = (B, 3, T) if head == "multiple-choice" else (B, T)
            mask = (np.arange(T) < rng.integers(1, T + 1, (*sizes[:-1], 1))).astype(np.int64)
            inputs = dict(input_ids=rng.integers(0, 31, sizes), attention_mask=mask)
            got, want = program(**inputs), model(**{k: Tensor(v) for k, v in inputs.items()})
            assert set(got) == set(want)
            for field in got:
                np.testing.assert_allclose(got[field].numpy(), want[field].numpy(), atol=1e-5, err_msg=field)


@pytest.mark.parametrize(
    "inputs, error, message",
    [
        (dict(input_ids=np.zeros((1, 11), int)), ValueError, "the length 11 is more than the 10 positions"),
        (dict(input_ids=[[1, 31]]), IndexError, "31"),
        (dict(input_ids=[[1, 2]], token_type_ids=[[0, 0]]), TypeError, "token_type_ids"),
    ],
)
def test_wrong_inputs(inputs, error, message):
    with pytest.raises(error, match=message):
        plm.from_config(CFG)(**inputs)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(n_heads=0), "DistilBertConfig: n_heads must be at least 1, got 0"),
        (dict(n_heads=5), "dim must be a multiple of n_heads = 5, got 12"),
        (dict(activation="quick_gelu"), "activation must be one of gelu, .*got 'quick_gelu'"),
        (dict(qa_dropout=1.5), r"qa_dropout must be in \[0, 1\), got 1.5"),
        (dict(sinusoidal_pos_embds=1), "sinusoidal_pos_embds must be true or false, got 1"),
    ],
)
def test_wrong_configs(changes, message):
    with pytest.raises(ValueError, match=message):
        DistilBertConfig.from_dict({**CFG.to_dict(), **changes})
