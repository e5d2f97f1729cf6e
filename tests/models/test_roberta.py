import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models
from plmcore.models import names
from plmcore.models.roberta import HEADS, Roberta, RobertaConfig, RobertaMaskedLM, XLMRobertaConfig

CFG = RobertaConfig(
    vocab_size=31, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=17,
    max_position_embeddings=12, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)  # fmt: skip
PUBLISHED = dict(max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5)
BASE = RobertaConfig(**PUBLISHED)
LARGE = BASE.replace(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
rng = np.random.default_rng(0)
IDS = rng.integers(2, 31, (3, 7))
MASK = (np.arange(7) < np.array([7, 2, 4])[:, None]).astype(np.int64)
IDS[MASK == 0] = 1


@pytest.mark.parametrize("config, count", [(BASE, 124_697_433), (LARGE, 355_412_057)])
def test_published_counts(config, count):
    before = plm.memory_stats()["allocations"]
    assert models.count_parameters(config, "masked-lm") == count
    assert plm.memory_stats()["allocations"] == before  # no weights were made


@pytest.mark.parametrize("kind", [RobertaConfig, XLMRobertaConfig])
@pytest.mark.parametrize("head", HEADS)
def test_every_head_has_names_and_its_count(head, kind):
    cfg = kind.from_dict({k: v for k, v in CFG.to_dict().items() if k != "model_type"})
    model = models.build(cfg, head)
    assert model.num_parameters() == models.count_parameters(cfg, head)
    written = names.published(models.roberta, model)
    assert sum(t.size for t in written.values()) == model.num_parameters()
    published = models.architecture_of(cfg, head)
    assert published.startswith("Roberta" if kind is RobertaConfig else "XLMRoberta")
    assert models.head_name(model) == head and models.head_of(cfg.replace(architectures=(published,))) == head


def test_each_model_type_has_its_config():
    assert type(models.config_from_dict({"model_type": "roberta"})) is RobertaConfig
    xlm = models.config_from_dict({"model_type": "xlm-roberta"})
    assert type(xlm) is XLMRobertaConfig and xlm.to_dict()["model_type"] == "xlm-roberta"
    assert (RobertaConfig().vocab_size, xlm.vocab_size, xlm.pad_token_id) == (50265, 30522, 1)


def test_published_initialisation():
    plm.seed(0)
    model = RobertaMaskedLM(
        CFG.replace(vocab_size=500, hidden_size=64, num_attention_heads=4, intermediate_size=128)
    )
    for name, p in model.named_parameters():
        values = p.numpy()
        if name.endswith("bias") or name.endswith("beta"):
            assert not values.any(), name
        elif name.endswith("gamma"):
            assert (values == 1).all(), name
        elif values.shape[0] > 30:
            assert abs(values.std() - 0.02) < 0.001 and np.abs(values).max() > 0.05, name  # not cut
    for table in (model.body.embeddings.tokens, model.body.embeddings.positions):
        assert not table.weight.numpy()[1].any() and table.weight.numpy()[0].all()
    assert model.predictions.decoder.weight is model.body.embeddings.tokens.weight


def test_positions_count_the_tokens_that_are_no_padding():
    ids = np.array([[5, 6, 7, 1, 1], [1, 1, 8, 9, 3], [4, 1, 5, 1, 6]])
    positions = Roberta(CFG).embeddings.count(Tensor(ids)).numpy()
    np.testing.assert_array_equal(positions, [[2, 3, 4, 1, 1], [1, 1, 2, 3, 4], [2, 1, 3, 1, 4]])


@pytest.mark.parametrize("side", ["right", "left"])
def test_padding_changes_nothing_and_leaves_zeros(side):
    model = Roberta(CFG).eval()
    ids, mask = (IDS, MASK) if side == "right" else (IDS[:, ::-1].copy(), MASK[:, ::-1].copy())
    with plm.no_grad():
        out = model(Tensor(ids), Tensor(mask), output_hidden_states=True)
        alone = model(Tensor(ids[1:2][:, mask[1] == 1]))
    for x in (out.last_hidden_state, *out.hidden_states):
        assert not x.numpy()[mask == 0].any() and x.numpy()[mask == 1].all()
    np.testing.assert_allclose(
        out.last_hidden_state.numpy()[1, mask[1] == 1], alone.last_hidden_state.numpy()[0], atol=1e-6
    )


def test_padding_rows_of_both_tables_get_no_gradient():
    lm = plm.from_config(CFG, "masked-lm")
    lm(
        input_ids=IDS, labels=np.where(IDS == 1, 4, IDS)
    ).loss.backward()  # without a mask padding is computed like any token
    positions = lm.model.body.embeddings.positions.weight.grad.numpy()
    assert not positions[1].any() and positions[2].any()


def test_language_model_head_keeps_gelu():
    relu = RobertaMaskedLM(CFG.replace(hidden_act="relu"))
    assert relu.predictions.dense.activation == "gelu" and relu.body.blocks[0].mlp.up.activation == "relu"


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
            inputs = dict(input_ids=np.where(mask, rng.integers(2, 31, sizes), 1), attention_mask=mask)
            got, want = program(**inputs), model(**{k: Tensor(v) for k, v in inputs.items()})
            assert set(got) == set(want)
            for field in got:
                np.testing.assert_allclose(got[field].numpy(), want[field].numpy(), atol=1e-5, err_msg=field)


@pytest.mark.parametrize(
    "inputs, error, message",
    [
        (dict(input_ids=np.full((1, 11), 5)), ValueError, "the length 11 is more than the 10 positions"),
        (dict(input_ids=[[3, 31]]), IndexError, "31"),
        (
            dict(input_ids=[[3, 2]], attention_mask=[[1, 0, 1]]),
            ValueError,
            r"attention_mask must be \[1, 2\] like input_ids, got \[1, 3\]",
        ),
    ],
)
def test_wrong_inputs(inputs, error, message):
    with pytest.raises(error, match=message):
        plm.from_config(CFG)(**inputs)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(pad_token_id=None), "RobertaConfig: pad_token_id must be a whole number, got None"),
        (dict(pad_token_id=-1), "pad_token_id must be at least 0, got -1"),
        (
            dict(pad_token_id=31),
            "pad_token_id must be below vocab_size and leave positions behind it, got 31",
        ),
        (
            dict(pad_token_id=11),
            "pad_token_id must be below vocab_size and leave positions behind it, got 11",
        ),
        (dict(num_attention_heads=5), "hidden_size must be a multiple of num_attention_heads = 5, got 12"),
    ],
)
def test_wrong_configs(changes, message):
    with pytest.raises(ValueError, match=message):
        RobertaConfig.from_dict({**CFG.to_dict(), **changes})
