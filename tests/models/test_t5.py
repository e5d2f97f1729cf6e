import math

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models
from plmcore.models import names
from plmcore.models.t5 import HEADS, T5, T5Config, T5Encoder, T5Seq2SeqLM

CFG = T5Config(
    vocab_size=31,
    d_model=12,
    d_kv=5,
    d_ff=17,
    num_layers=2,
    num_decoder_layers=3,
    num_heads=3,
    dropout_rate=0.0,
    relative_attention_num_buckets=8,
    relative_attention_max_distance=6,
)
V11 = CFG.replace(feed_forward_proj="gated-gelu", tie_word_embeddings=False)
rng = np.random.default_rng(0)
IDS = rng.integers(2, 31, (3, 7))
MASK = (np.arange(7) < np.array([7, 2, 4])[:, None]).astype(np.int64)
LABELS = rng.integers(2, 31, (3, 5))


def sized(d_model, d_kv, d_ff, num_layers, num_heads, **others):
    return T5Config(
        d_model=d_model, d_kv=d_kv, d_ff=d_ff, num_layers=num_layers, num_heads=num_heads, **others
    )


@pytest.mark.parametrize(
    "config, count",
    [
        (T5Config(), 60_506_624),
        (sized(768, 64, 3072, 12, 12), 222_903_552),
        (sized(1024, 64, 4096, 24, 16), 737_668_096),
        (sized(1024, 128, 16384, 24, 32), 2_851_598_336),
        (sized(1024, 128, 65536, 24, 128), 11_307_321_344),
        # 1.1 small: 8 layers a stack, 6 heads of 64, gated: a second matrix of the feed-forward layer, and an
        # output layer of its own
        (sized(512, 64, 1024, 8, 6, feed_forward_proj="gated-gelu", tie_word_embeddings=False), 76_961_152),
    ],
)
def test_published_counts(config, count):
    before = plm.memory_stats()["allocations"]
    assert models.count_parameters(config, "seq2seq-lm") == count
    assert plm.memory_stats()["allocations"] == before  # no weights were made


@pytest.mark.parametrize("config", [CFG, V11], ids=["original", "v1.1"])
@pytest.mark.parametrize("head", HEADS)
def test_every_head_has_names_and_its_count(head, config):
    model = models.build(config, head)
    assert model.num_parameters() == models.count_parameters(config, head)
    written = names.published(models.t5, model)
    assert sum(t.size for t in written.values()) == model.num_parameters()
    classifies = head in ("sequence-classification", "token-classification")
    assert ("transformer.shared.weight" if classifies else "shared.weight") in written
    assert models.head_name(model) == head
    assert models.head_of(config.replace(architectures=(models.architecture_of(config, head),))) == head


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_published_initialisation(factor):
    plm.seed(0)
    d, D, F, H = 64, 16, 200, 8
    config = sized(
        d,
        D,
        F,
        1,
        H,
        vocab_size=300,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        initializer_factor=factor,
    )
    written = names.published(models.t5, T5Seq2SeqLM(config))
    std = dict(
        q=(d * D) ** -0.5, k=d**-0.5, v=d**-0.5, o=(H * D) ** -0.5, wi_0=d**-0.5, wi_1=d**-0.5, wo=F**-0.5
    )
    std |= dict(shared=1.0, lm_head=1.0, relative_attention_bias=d**-0.5)
    drawn = set()
    for name, values in written.items():
        kind, values = name.split(".")[-2], values.numpy()
        if "norm" in kind:
            assert (values == factor).all(), name
        else:
            error = 5 / math.sqrt(2 * values.size)  # five standard errors
            assert values.std() == pytest.approx(factor * std[kind], rel=error), name
            drawn.add(kind)
    assert drawn == set(std)


def test_scores_are_not_divided():
    """Attention with 1 / sqrt(D) gives something else."""
    model = T5Encoder(CFG).eval()
    with plm.no_grad():
        x = model(Tensor(IDS)).last_hidden_state.numpy()
        for block in model.encoder.blocks:
            block.attn.scale = None
        assert np.abs(model(Tensor(IDS)).last_hidden_state.numpy() - x).max() > 1e-3


def test_padding_changes_nothing_and_leaves_zeros():
    model = T5(CFG).eval()
    target = Tensor(LABELS)
    with plm.no_grad():
        out = model(Tensor(IDS), Tensor(MASK), target, output_hidden_states=True)
        alone = model(Tensor(IDS[1:2, :2].copy()), None, Tensor(LABELS[1:2]))
        left = model(Tensor(IDS[:, ::-1].copy()), Tensor(MASK[:, ::-1].copy()), target)
        alone_left = model(Tensor(IDS[1:2, 1::-1].copy()), None, Tensor(LABELS[1:2]))
        kept = model(Tensor(IDS), Tensor(MASK), target, output_attentions=True)
    for x in (out.encoder_last_hidden_state, *out.encoder_hidden_states):
        assert not x.numpy()[MASK == 0].any() and x.numpy()[MASK == 1].all()
    for a, b in ((out, alone), (left, alone_left)):
        np.testing.assert_allclose(a.last_hidden_state.numpy()[1], b.last_hidden_state.numpy()[0], atol=1e-5)
    np.testing.assert_allclose(kept.last_hidden_state.numpy(), out.last_hidden_state.numpy(), atol=1e-5)
    assert (
        len(kept.encoder_attentions) == 2 and len(kept.decoder_attentions) == len(kept.cross_attentions) == 3
    )
    for w in kept.cross_attentions:
        assert w.shape == (3, 3, 5, 7) and not w.numpy()[1, ..., 2:].any()
        np.testing.assert_allclose(w.numpy().sum(-1), 1, atol=1e-6)


def test_holes_of_the_mask_keep_distances():
    mask = np.array([[1, 0, 1, 1, 0, 1, 0], [0, 1, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1]])
    model = T5Encoder(CFG).eval()
    with plm.no_grad():
        dropped = model(Tensor(IDS), Tensor(mask)).last_hidden_state.numpy()
        kept = model(Tensor(IDS), Tensor(mask), output_attentions=True).last_hidden_state.numpy()
        other = model(Tensor(np.where(mask, IDS, 3)), Tensor(mask)).last_hidden_state.numpy()
    np.testing.assert_allclose(dropped, kept, atol=1e-5)
    np.testing.assert_array_equal(dropped, other)


def test_dropped_rows_cost_nothing():
    specs = dict(input_ids=plm.spec("int64", "B", "T"), attention_mask=plm.spec("int64", "B", "T"))
    program = plm.trace(T5Encoder(CFG).eval(), **specs)
    products = [line for line in repr(program).splitlines() if " linear(" in line]
    assert len(products) == 8 and all("[N" in line for line in products)


def test_later_targets_change_nothing_before():
    model = T5(CFG).eval()
    changed = LABELS.copy()
    changed[:, 3:] = (changed[:, 3:] + 1) % 31
    with plm.no_grad():
        a, b = (model(Tensor(IDS), None, Tensor(x)).last_hidden_state.numpy() for x in (LABELS, changed))
    assert (a[:, :3] == b[:, :3]).all() and (a[:, 3:] != b[:, 3:]).any()


def test_logits_of_labelled_positions_only():
    model = T5Seq2SeqLM(V11).eval()
    labels = np.where(rng.random(LABELS.shape) < 0.5, LABELS, -100)
    labels[0, 0] = 4
    with plm.no_grad():
        out = model(Tensor(IDS), Tensor(MASK), labels=Tensor(labels))
        assert "logits: computed when read" in repr(out)
        logits = out.logits.numpy()
        shifted = np.concatenate([np.zeros((3, 1), int), np.where(labels == -100, 0, labels)[:, :-1]], 1)
        plain = model(Tensor(IDS), Tensor(MASK), Tensor(shifted))
    np.testing.assert_allclose(plain.logits.numpy(), logits, atol=1e-5)
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p = (p / p.sum(-1, keepdims=True))[labels != -100, labels[labels != -100]]
    assert out.loss.item() == pytest.approx(-np.log(p).mean(), abs=1e-4)


def test_output_is_scaled_when_tied():
    plm.seed(0)
    scaled = T5Seq2SeqLM(CFG).eval()
    assert scaled.lm_head.weight is scaled.body.tokens.weight is scaled.body.decoder.tokens.weight
    with plm.no_grad():
        x = scaled(Tensor(IDS), labels=Tensor(LABELS)).logits.numpy()
        scaled.config = CFG.replace(scale_decoder_outputs=False)
        y = scaled(Tensor(IDS), labels=Tensor(LABELS)).logits.numpy()
    np.testing.assert_allclose(y, x * 12**0.5, rtol=1e-4, atol=1e-5)
    untied = T5Seq2SeqLM(V11)
    assert untied.lm_head.weight is not untied.body.tokens.weight and not V11.scales


def test_directories_with_and_without_an_output_layer(tmp_path):
    """Whether the output layer is tied is what the file says, whether it is scaled what config.json says."""
    lm = plm.from_config(V11, "seq2seq-lm").eval()
    lm.save(tmp_path / "untied")
    tensors, _ = plm.safetensors.read(tmp_path / "untied")
    assert "lm_head.weight" in tensors and "encoder.embed_tokens.weight" not in tensors
    again = plm.load(tmp_path / "untied")
    assert again.model.lm_head.weight is not again.model.body.tokens.weight and not again.config.scales

    tied = {name: tensor for name, tensor in tensors.items() if name != "lm_head.weight"}
    tied["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = Tensor(
        np.zeros((8, 3), np.float32)
    )
    (tmp_path / "tied").mkdir()
    (tmp_path / "tied" / "config.json").write_bytes((tmp_path / "untied" / "config.json").read_bytes())
    plm.safetensors.write(tmp_path / "tied" / "model.safetensors", tied)
    other = plm.load(tmp_path / "tied")
    assert other.model.lm_head.weight is other.model.body.tokens.weight and not other.config.scales
    other.save(tmp_path / "again")
    assert not plm.load(tmp_path / "again").config.scales
    encoder = plm.load(tmp_path / "untied", head="base-encoder")
    with plm.no_grad():
        a = encoder(input_ids=IDS, attention_mask=MASK).last_hidden_state.numpy()
        b = lm(input_ids=IDS, attention_mask=MASK, labels=LABELS).encoder_last_hidden_state.numpy()
    np.testing.assert_array_equal(a, b)


def test_encoder_outputs_may_be_given():
    model = T5Seq2SeqLM(CFG).eval()
    ids, mask, target = Tensor(IDS), Tensor(MASK), Tensor(LABELS)
    with plm.no_grad():
        whole = model(ids, mask, target)
        states = whole.encoder_last_hidden_state
        again = model(None, mask, target, encoder_outputs=(states,))
    np.testing.assert_allclose(again.logits.numpy(), whole.logits.numpy(), atol=1e-5)


def test_it_learns():
    plm.seed(1)
    lm = plm.from_config(CFG, "seq2seq-lm")
    opt = plm.optim.AdamW(lm.parameters(), lr=0.01)
    losses = []
    for _ in range(60):
        opt.zero_grad()
        loss = lm(input_ids=IDS, attention_mask=MASK, labels=LABELS).loss
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[0] > 3 and losses[-1] < 0.3


def test_dropout_is_on_in_training_only():
    lm = plm.from_config(CFG.replace(dropout_rate=0.5), "seq2seq-lm")
    x = [lm(input_ids=IDS, labels=LABELS).logits.numpy() for _ in range(2)]
    assert (x[0] != x[1]).any()
    lm.eval()
    x = [lm(input_ids=IDS, labels=LABELS).logits.numpy() for _ in range(2)]
    assert (x[0] == x[1]).all()


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("config", [CFG, V11], ids=["original", "v1.1"])
def test_trace_runs_at_other_sizes(config, mask):
    model = T5Seq2SeqLM(config).eval()
    specs = dict(input_ids=plm.spec("int64", "B", "S"), labels=plm.spec("int64", "B", "T"))
    if mask:
        specs["attention_mask"] = plm.spec("int64", "B", "S")
    with plm.no_grad():
        program = plm.trace(lambda **x: {f: model(**x)[f] for f in ("loss", "logits")}, **specs)
        for B, S, T in ((1, 1, 1), (4, 9, 3), (2, 3, 20)):
            inputs = dict(input_ids=rng.integers(0, 31, (B, S)), labels=rng.integers(0, 31, (B, T)))
            if mask:
                inputs["attention_mask"] = (rng.random((B, S)) < 0.6).astype(np.int64)
                inputs["attention_mask"][:, S // 2] = 1
            got, want = program(**inputs), model(**{k: Tensor(v) for k, v in inputs.items()})
            for field in got:
                np.testing.assert_allclose(got[field].numpy(), want[field].numpy(), atol=1e-5, err_msg=field)


@pytest.mark.parametrize(
    "head, inputs, error, message",
    [
        ("base", dict(input_ids=[[1, 2]]), ValueError, "decoder_input_ids are missing"),
        (
            "base",
            dict(decoder_input_ids=[[1, 2]]),
            ValueError,
            "one of input_ids and encoder_outputs must be given",
        ),
        ("base", dict(input_ids=[[1, 31]], decoder_input_ids=[[0]]), IndexError, "31"),
        (
            "base",
            dict(input_ids=[[1, 2]], decoder_input_ids=[0]),
            ValueError,
            r"decoder_input_ids must be whole numbers \[batch, length\], got int64 \[1\]",
        ),
        (
            "base",
            dict(input_ids=[[1, 2]], attention_mask=[[1, 0, 1]], decoder_input_ids=[[0]]),
            ValueError,
            r"attention_mask must be \[1, 2\] like input_ids, got \[1, 3\]",
        ),
        (
            "sequence-classification",
            dict(input_ids=[[4, 1], [1, 1]]),
            ValueError,
            r"same number of end-of-sequence tokens 1 in every row, got \[1, 2\]",
        ),
        (
            "sequence-classification",
            dict(input_ids=[[4, 5]]),
            ValueError,
            "must have an end-of-sequence token 1",
        ),
        ("base-encoder", dict(input_ids=[[1, 2]], words=3), TypeError, "words"),
    ],
)
def test_wrong_inputs(head, inputs, error, message):
    with pytest.raises(error, match=message):
        plm.from_config(CFG, head)(**inputs)


def test_labels_need_a_start_token():
    with pytest.raises(ValueError, match="decoder_start_token_id"):
        plm.from_config(CFG, "seq2seq-lm", decoder_start_token_id=None)(input_ids=IDS, labels=LABELS)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(d_model="12"), r"T5Config: d_model must be a whole number, got '12'"),
        (dict(num_heads=0), "num_heads must be at least 1, got 0"),
        (dict(num_decoder_layers=0), "decoder_layers must be at least 1, got 0"),
        (
            dict(feed_forward_proj="gated-maxout"),
            "feed_forward_proj must be one of gelu, .*got 'gated-maxout'",
        ),
        (dict(relative_attention_num_buckets=3), "relative_attention_num_buckets must be at least 4, got 3"),
        (
            dict(relative_attention_max_distance=4),
            "relative_attention_max_distance must be at least 5, got 4",
        ),
        (dict(dropout_rate=1), r"dropout_rate must be in \[0, 1\), got 1"),
        (dict(vocab_size=None), "vocab_size must be a whole number, got None"),
    ],
)
def test_wrong_configs(changes, message):
    with pytest.raises(ValueError, match=message):
        T5Config.from_dict({**CFG.to_dict(), **changes})
