import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models
from plmcore.models import names
from plmcore.models.albert import HEADS, Albert, AlbertConfig, AlbertMaskedLM

CFG = AlbertConfig(
    vocab_size=31,
    embedding_size=5,
    hidden_size=12,
    num_hidden_layers=4,
    num_attention_heads=3,
    intermediate_size=17,
    max_position_embeddings=10,
    classifier_dropout_prob=0.0,
)
BASE = AlbertConfig(hidden_size=768, num_attention_heads=12, intermediate_size=3072)
LARGE = AlbertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
XLARGE = LARGE.replace(hidden_size=2048, intermediate_size=8192)
MODES = ("all", "attention", "ffn", "none")
rng = np.random.default_rng(0)
IDS = rng.integers(0, 31, (3, 7))
MASK = (np.arange(7) < np.array([7, 2, 4])[:, None]).astype(np.int64)


@pytest.mark.parametrize(
    "config, count",
    [(BASE, 11_683_584), (LARGE, 17_683_968), (XLARGE, 58_724_864), (AlbertConfig(), 222_595_584)],
    ids=["base", "large", "xlarge", "xxlarge"],
)
def test_published_counts(config, count):
    before = plm.memory_stats()["allocations"]
    assert models.count_parameters(config) == count
    assert plm.memory_stats()["allocations"] == before  # no weights were made


def test_counts_of_the_papers_table_of_sharing():
    """Lan et al., table 4, embeddings of 128: all-shared, shared-attention, shared-FFN, not-shared, in
    millions.
    """
    counts = [models.count_parameters(BASE.sharing(mode)) for mode in MODES]
    np.testing.assert_allclose(np.array(counts) / 1e6, [12, 64, 38, 89], atol=1)


def test_exact_counts_of_sharing():
    C, F, L = CFG.hidden_size, CFG.intermediate_size, CFG.num_hidden_layers
    attention, ffn = 4 * (C * C + C) + 2 * C, 2 * C * F + F + C + 2 * C
    rest = models.count_parameters(CFG) - attention - ffn
    counts = [models.count_parameters(CFG.sharing(mode)) - rest for mode in MODES]
    assert counts == [attention + ffn, attention + L * ffn, L * attention + ffn, L * (attention + ffn)]


@pytest.mark.parametrize("head", HEADS)
def test_every_head_has_names_and_its_count(head):
    model = models.build(CFG, head)
    assert model.num_parameters() == models.count_parameters(CFG, head)
    written = names.published(models.albert, model)
    assert sum(t.size for t in written.values()) == model.num_parameters()
    published = models.architecture_of(CFG, head)
    assert models.head_name(model) == head and models.head_of(CFG.replace(architectures=(published,))) == head


def test_published_initialisation():
    plm.seed(0)
    model = AlbertMaskedLM(
        CFG.replace(
            vocab_size=500, embedding_size=48, hidden_size=64, num_attention_heads=4, intermediate_size=128
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


def test_layers_of_groups():
    body = Albert(CFG.replace(num_hidden_layers=5, num_hidden_groups=2, inner_group_num=2))
    (a, b), (c, d) = (group.blocks for group in body.groups)
    assert body.blocks == [a, b, a, b, a, b, c, d, c, d]


@pytest.mark.parametrize("mode", MODES)
def test_what_layers_share(mode):
    first, *others = Albert(CFG.sharing(mode)).blocks
    assert len(others) == 3
    for block in others:
        assert (block.attn.qkv.weight is first.attn.qkv.weight) == (mode in ("all", "attention"))
        assert (block.norm1.gamma is first.norm1.gamma) == (mode in ("all", "attention"))
        assert (block.mlp.up.weight is first.mlp.up.weight) == (mode in ("all", "ffn"))
        assert (block.norm2.gamma is first.norm2.gamma) == (mode in ("all", "ffn"))


@pytest.mark.parametrize("mode", MODES)
def test_a_shared_gradient_is_the_sum_over_the_layers(mode, tmp_path):
    """A shared model, and one of equal weights in which every layer has its own."""
    plm.seed(2)
    config = CFG.sharing(mode)
    shared = plm.from_config(config, "masked-lm", dtype="float64").eval()
    blocks = shared.model.body.blocks
    apart = plm.from_config(CFG.sharing("none"), "masked-lm", dtype="float64").eval()
    apart.model.load_state_dict(
        {n: p for n, p in shared.named_parameters() if ".groups." not in n}
        | {f"body.groups.{i}.blocks.0.{n}": p for i, b in enumerate(blocks) for n, p in b.named_parameters()}
    )
    losses = [lm(input_ids=IDS, attention_mask=MASK, labels=IDS).loss for lm in (shared, apart)]
    assert losses[0].item() == pytest.approx(losses[1].item(), abs=1e-12)
    for loss in losses:
        loss.backward()
    for name in ("attn.qkv.weight", "norm1.gamma", "mlp.up.weight", "norm2.beta"):

        def of(block, name=name):
            return dict(block.named_parameters())[name].grad.numpy()

        is_shared = mode == "all" or mode == ("attention" if name[:5] in ("attn.", "norm1") else "ffn")
        parts = [of(block) for block in apart.model.body.blocks]
        expected = sum(parts) if is_shared else parts[0]
        np.testing.assert_allclose(of(blocks[0]), expected, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_saved_once_per_group_and_shared_again_when_loaded(mode, tmp_path):
    lm = plm.from_config(CFG.sharing(mode), "masked-lm").eval()
    lm.save(tmp_path)
    tensors, _ = plm.safetensors.read(tmp_path)
    groups = 1 if mode == "all" else 4
    queries = [n for n in tensors if n.endswith("attention.query.weight")]
    assert queries == [
        f"albert.encoder.albert_layer_groups.{g}.albert_layers.0.attention.query.weight"
        for g in range(groups)
    ]
    again = plm.load(tmp_path)
    assert (
        again.model.num_parameters()
        == lm.model.num_parameters()
        == models.count_parameters(lm.config, "masked-lm")
    )
    assert (again(input_ids=IDS).logits.numpy() == lm(input_ids=IDS).logits.numpy()).all()


def test_padding_changes_nothing_and_leaves_zeros():
    model = Albert(CFG.replace(inner_group_num=2)).eval()
    with plm.no_grad():
        out = model(Tensor(IDS), Tensor(MASK), output_hidden_states=True)
        alone = model(Tensor(IDS[1:2, :2].copy()))
    assert len(out.hidden_states) == 9
    for x in (out.last_hidden_state, *out.hidden_states):
        assert not x.numpy()[MASK == 0].any() and x.numpy()[MASK == 1].all()
    np.testing.assert_allclose(
        out.last_hidden_state.numpy()[1, :2], alone.last_hidden_state.numpy()[0], atol=1e-6
    )
    np.testing.assert_allclose(out.pooler_output.numpy()[1], alone.pooler_output.numpy()[0], atol=1e-6)


def test_pretraining_logits_wait():
    lm = plm.from_config(CFG, "pretraining").eval()
    out = lm(input_ids=IDS, attention_mask=MASK, labels=IDS, sentence_order_label=[0, 1, 1])
    assert "prediction_logits: computed when read" in repr(out)
    logits, order = (
        out.prediction_logits.numpy().astype(np.float64),
        out.sop_logits.numpy().astype(np.float64),
    )
    assert logits.shape == (3, 7, 31) and order.shape == (3, 2)
    order -= np.log(np.exp(order).sum(-1, keepdims=True))
    tokens = lm(input_ids=IDS, attention_mask=MASK, labels=IDS, sentence_order_label=[1, 1, 1]).loss.item()
    assert out.loss.item() - tokens == pytest.approx((order[0, 1] - order[0, 0]) / 3, abs=1e-5)


def test_it_learns():
    plm.seed(1)
    lm = plm.from_config(CFG.replace(embedding_size=12), "masked-lm")
    opt = plm.optim.AdamW(lm.parameters(), lr=0.01)
    losses = []
    for _ in range(80):
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
    "changes, message",
    [
        (dict(num_hidden_groups=0), "AlbertConfig: num_hidden_groups must be at least 1, got 0"),
        (dict(inner_group_num=0), "inner_group_num must be at least 1, got 0"),
        (dict(embedding_size=0), "embedding_size must be at least 1, got 0"),
        (dict(groups_share="half"), "groups_share must be one of none, attention, ffn, all, got 'half'"),
        (dict(num_attention_heads=5), "hidden_size must be a multiple of num_attention_heads = 5, got 12"),
    ],
)
def test_wrong_configs(changes, message):
    with pytest.raises(ValueError, match=message):
        AlbertConfig.from_dict({**CFG.to_dict(), **changes})
    with pytest.raises(ValueError, match="groups_share must be one of"):
        CFG.sharing("most")
