"""BART and mBART."""

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models
from plmcore.models import bart, mbart, names
from plmcore.models.bart import Bart, BartConfig, BartSeq2SeqLM
from plmcore.models.mbart import MBartConfig

SIZES = dict(
    vocab_size=31,
    d_model=12,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=3,
    decoder_attention_heads=2,
    encoder_ffn_dim=17,
    decoder_ffn_dim=9,
    max_position_embeddings=10,
    dropout=0.0,
)
CFG, MCFG = BartConfig(**SIZES), MBartConfig(**SIZES, scale_embedding=True)
BASE = BartConfig(
    d_model=768, encoder_layers=6, decoder_layers=6, encoder_attention_heads=12, decoder_attention_heads=12,
    encoder_ffn_dim=3072, decoder_ffn_dim=3072,
)  # fmt: skip
LARGE = BartConfig()
rng = np.random.default_rng(0)
IDS, LABELS = rng.integers(3, 31, (3, 7)), rng.integers(3, 31, (3, 5))
MASK = (np.arange(7) < np.array([7, 2, 4])[:, None]).astype(np.int64)


@pytest.mark.parametrize("config, count", [(BASE, 139_420_416), (LARGE, 406_291_456)])
def test_published_counts(config, count):
    before = plm.memory_stats()["allocations"]
    assert models.count_parameters(config, "seq2seq-lm") == count
    assert plm.memory_stats()["allocations"] == before  # no weights were made


@pytest.mark.parametrize("config, family", [(CFG, bart), (MCFG, mbart)])
@pytest.mark.parametrize("head", bart.HEADS)
def test_every_head_has_names_and_its_count(head, config, family):
    model = models.build(config, head)
    assert model.num_parameters() == models.count_parameters(config, head)
    written = names.published(family, model)
    assert sum(t.size for n, t in written.items() if n != "final_logits_bias") == model.num_parameters()
    assert models.head_name(model) == head
    assert models.head_of(config.replace(architectures=(models.architecture_of(config, head),))) == head


def test_published_names():
    written = names.published(bart, BartSeq2SeqLM(CFG))
    assert tuple(written["final_logits_bias"].shape) == (1, 31)
    assert tuple(written["model.encoder.embed_positions.weight"].shape) == (
        12,
        12,
    )  # two rows more than positions
    assert "model.shared.weight" in written and "lm_head.weight" not in written
    assert "model.decoder.layers.1.encoder_attn.v_proj.bias" in written


def test_published_initialisation():
    plm.seed(0)
    model = BartSeq2SeqLM(
        BartConfig(
            **{**SIZES, "vocab_size": 500, "d_model": 60, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
        )
    )
    for name, p in model.named_parameters():
        values = p.numpy()
        if name.endswith(("bias", "beta")):
            assert not values.any(), name
        elif name.endswith("gamma"):
            assert (values == 1).all(), name
        else:
            assert abs(values.std() - 0.02) < 0.002 and abs(values).max() > 0.045, name
    body = model.body
    assert not body.shared.weight.numpy()[1].any() and not model.logits_bias.numpy().any()
    tables = [
        body.encoder.embeddings.tokens.weight,
        body.decoder.embeddings.tokens.weight,
        model.output.weight,
    ]
    assert all(w is body.shared.weight for w in tables)


@pytest.mark.parametrize("config", [CFG, MCFG], ids=["bart", "mbart"])
def test_padding_changes_nothing_and_leaves_zeros(config):
    model = models.build(config).eval()
    inputs = dict(attention_mask=Tensor(MASK), decoder_input_ids=Tensor(LABELS))
    with plm.no_grad():
        out = model(Tensor(IDS), **inputs, output_hidden_states=True)
        alone = model(Tensor(IDS[1:2, :2].copy()), decoder_input_ids=Tensor(LABELS[1:2].copy()))
        kept = model(Tensor(IDS), **inputs, output_attentions=True)
        short = model(Tensor(IDS), **inputs, decoder_attention_mask=Tensor(MASK[:, :5].copy()))
    for x in (out.encoder_last_hidden_state, *out.encoder_hidden_states):
        assert not x.numpy()[MASK == 0].any() and x.numpy()[MASK == 1].all()
    np.testing.assert_allclose(
        out.last_hidden_state.numpy()[1], alone.last_hidden_state.numpy()[0], atol=1e-5
    )
    np.testing.assert_allclose(kept.last_hidden_state.numpy(), out.last_hidden_state.numpy(), atol=1e-5)
    for w in kept.cross_attentions:
        assert w.shape == (3, 2, 5, 7) and not w.numpy()[1, :, :, 2:].any()
        np.testing.assert_allclose(w.numpy().sum(-1), 1, atol=1e-6)
    seen = MASK[:, :5]
    assert not short.last_hidden_state.numpy()[seen == 0].any()
    np.testing.assert_allclose(
        short.last_hidden_state.numpy()[seen == 1], out.last_hidden_state.numpy()[seen == 1], atol=1e-5
    )


def test_dropped_rows_cost_nothing():
    """Products of the encoder, and the keys and values that the decoder takes from it, run on rows that are
    no padding.
    """
    specs = dict(
        input_ids=plm.spec("int64", "B", "S"),
        attention_mask=plm.spec("int64", "B", "S"),
        decoder_input_ids=plm.spec("int64", "B", "T"),
    )
    products = [
        line for line in repr(plm.trace(Bart(CFG).eval(), **specs)).splitlines() if " linear(" in line
    ]
    assert len(products) == 2 * 4 + 2 * 7 and sum("[N" in line for line in products) == 2 * 4 + 2


def test_the_future_does_not_leak():
    model = BartSeq2SeqLM(CFG).eval()
    other = LABELS.copy()
    other[:, 3:] = 30 - other[:, 3:] % 20
    with plm.no_grad():
        a, b = (model(Tensor(IDS), decoder_input_ids=Tensor(x)).logits.numpy() for x in (LABELS, other))
    assert np.array_equal(a[:, :3], b[:, :3]) and (a[:, 3:] != b[:, 3:]).any()


def test_decoder_input_from_labels_and_logits_when_read():
    model = BartSeq2SeqLM(CFG).eval()
    labels = np.where(np.arange(5) < 3, LABELS, -100)
    shifted = np.concatenate([np.full((3, 1), 2), np.where(labels == -100, 1, labels)[:, :-1]], 1)
    with plm.no_grad():
        out = model(Tensor(IDS), attention_mask=Tensor(MASK), labels=Tensor(labels))
        same = model(Tensor(IDS), attention_mask=Tensor(MASK), decoder_input_ids=Tensor(shifted))
        assert "logits: computed when read" in repr(out)
        logits = out.logits.numpy()
    np.testing.assert_allclose(logits, same.logits.numpy(), atol=1e-6)
    p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = -np.mean([p[b, t, labels[b, t]] for b in range(3) for t in range(3)])
    assert out.loss.item() == pytest.approx(expected, abs=1e-5)


def test_a_fixed_bias_of_the_logits(tmp_path):
    lm = plm.from_config(CFG, "seq2seq-lm").eval()
    before = lm(input_ids=IDS).logits.numpy()
    lm.model.logits_bias.numpy()[:] = np.arange(31)
    lm.save(tmp_path)
    again = plm.load(tmp_path)
    np.testing.assert_allclose(again(input_ids=IDS).logits.numpy(), before + np.arange(31), atol=1e-5)
    assert not again.model.logits_bias.requires_grad and all(
        p is not again.model.logits_bias for p in again.parameters()
    )


def test_mbart_begins_with_the_language():
    labels = np.array([[5, 6, 2, 30], [9, 30, -100, -100]])
    assert models.build(MCFG).shifted(Tensor(labels)).tolist() == [[30, 5, 6, 2], [30, 9, 30, 1]]


def test_an_encoder_runs_once_for_several_targets():
    model = BartSeq2SeqLM(CFG).eval()
    with plm.no_grad():
        first = model(Tensor(IDS), Tensor(MASK), Tensor(LABELS))
        for given in (first, first.encoder_last_hidden_state, (first.encoder_last_hidden_state,)):
            again = model(
                encoder_outputs=given, attention_mask=Tensor(MASK), decoder_input_ids=Tensor(LABELS)
            )
            np.testing.assert_allclose(again.logits.numpy(), first.logits.numpy(), atol=1e-6)


@pytest.mark.parametrize("config", [CFG, MCFG], ids=["bart", "mbart"])
def test_it_learns_to_copy(config):
    plm.seed(1)
    lm = plm.from_config(config, "seq2seq-lm")
    opt = plm.optim.AdamW(lm.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        opt.zero_grad()
        loss = lm(input_ids=IDS, attention_mask=MASK, labels=np.where(MASK == 1, IDS, -100)).loss
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[0] > 3 and losses[-1] < 0.3


def test_dropout_everywhere_the_config_says():
    for key in ("dropout", "attention_dropout", "activation_dropout"):
        lm = plm.from_config(CFG.replace(**{key: 0.5}), "seq2seq-lm")
        assert (lm(input_ids=IDS).logits.numpy() != lm(input_ids=IDS).logits.numpy()).any(), key
        lm.eval()
        assert (lm(input_ids=IDS).logits.numpy() == lm(input_ids=IDS).logits.numpy()).all(), key


@pytest.mark.parametrize("config", [CFG, MCFG], ids=["bart", "mbart"])
@pytest.mark.parametrize("mask", [False, True])
def test_trace_runs_at_other_sizes(mask, config):
    model = models.build(config, "seq2seq-lm").eval()
    specs = dict(input_ids=plm.spec("int64", "B", "S"), labels=plm.spec("int64", "B", "T"))
    if mask:
        specs["attention_mask"] = plm.spec("int64", "B", "S")
    with plm.no_grad():
        program = plm.trace(model, **specs)
        for B, S, T in ((1, 1, 1), (4, 9, 2), (2, 3, 8)):
            inputs = dict(input_ids=rng.integers(3, 31, (B, S)), labels=rng.integers(3, 31, (B, T)))
            if mask:
                inputs["attention_mask"] = (np.arange(S) < rng.integers(1, S + 1, (B, 1))).astype(np.int64)
            got, want = program(**inputs), model(**{k: Tensor(v) for k, v in inputs.items()})
            assert set(got) == {"loss", "logits", "encoder_last_hidden_state"}
            for field in got:
                np.testing.assert_allclose(got[field].numpy(), want[field].numpy(), atol=1e-5, err_msg=field)


BAD = [
    (
        "seq2seq-lm",
        dict(input_ids=np.zeros((1, 11), int)),
        "input_ids: the length 11 is more than the 10 positions",
    ),
    (
        "seq2seq-lm",
        dict(input_ids=[[1]], decoder_input_ids=[[3] * 11]),
        "decoder_input_ids: the length 11 is more than the 10 positions",
    ),
    (
        "seq2seq-lm",
        dict(input_ids=[[1, 2]], decoder_input_ids=[[3.5]]),
        "decoder_input_ids must be whole numbers",
    ),
    (
        "seq2seq-lm",
        dict(input_ids=[[1, 2]], attention_mask=[[1]]),
        r"attention_mask must be \[1, 2\] like input_ids, got \[1, 1\]",
    ),
    (
        "seq2seq-lm",
        dict(input_ids=[[1, 2]], decoder_input_ids=[[3, 4]], decoder_attention_mask=[[1]]),
        r"decoder_attention_mask must be \[1, 2\] like decoder_input_ids, got \[1, 1\]",
    ),
    ("seq2seq-lm", dict(labels=[[1, 2]]), "one of input_ids and encoder_outputs must be given"),
    (
        "seq2seq-lm",
        dict(encoder_outputs=[[1.0, 2.0]], decoder_input_ids=[[3]]),
        r"encoder_outputs must hold the encoder's states \[batch, length, width\], got \[1, 2\]",
    ),
    ("seq2seq-lm", dict(encoder_outputs=np.zeros((1, 2, 12), np.float32)), "decoder_input_ids are missing"),
    (
        "sequence-classification",
        dict(input_ids=[[3, 2, 2], [3, 4, 2]]),
        r"the same number of end-of-sequence tokens 2 in every row, got \[2, 1\]",
    ),
    (
        "sequence-classification",
        dict(input_ids=[[3, 4]]),
        "an end-of-sequence token 2 in every row, got none",
    ),
]


@pytest.mark.parametrize("head, inputs, message", BAD)
def test_bad_input(head, inputs, message):
    with pytest.raises(ValueError, match=message):
        plm.from_config(CFG, head)(**inputs)


def test_targets_of_another_batch():
    with pytest.raises(ValueError, match="attention"):
        plm.from_config(CFG)(input_ids=[[3, 4]], decoder_input_ids=[[3, 4]] * 3)


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            dict(encoder_attention_heads=5),
            "d_model must be a multiple of encoder_attention_heads = 5, got 12",
        ),
        (dict(decoder_attention_heads=0), "decoder_attention_heads must be at least 1, got 0"),
        (dict(dropout=1.0), r"dropout must be in \[0, 1\), got 1.0"),
        (dict(activation_function="maxout"), "activation_function must be one of .*, got 'maxout'"),
        (
            dict(decoder_layerdrop=0.1),
            r"decoder_layerdrop must be 0 .*plm.load\(dir, decoder_layerdrop=0\) opens it\), got 0.1",
        ),
        (dict(scale_embedding=1), "scale_embedding must be true or false, got 1"),
    ],
)
def test_bad_config(changes, message):
    with pytest.raises(ValueError, match=message):
        CFG.replace(**changes)


def test_labels_of_saved_configs():
    """A fresh BartConfig has three labels, transformers' other configs two: another number must be written
    down.
    """
    assert "id2label" not in CFG.to_dict() and len(CFG.replace(num_labels=2).to_dict()["id2label"]) == 2
    assert BartConfig.from_dict(CFG.replace(num_labels=2).to_dict()).num_labels == 2
    assert "id2label" not in MCFG.to_dict() and MCFG.num_labels == 2
