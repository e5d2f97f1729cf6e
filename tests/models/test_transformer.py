"""The Transformer of Vaswani et al., with Marian's and fairseq's positions."""

import math

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models
from plmcore.models import names, padding, sinusoids, transformer
from plmcore.models.sinusoids import SINUSOIDS
from plmcore.models.transformer import HEADS, MarianConfig, TransformerConfig

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
KINDS = {kind: TransformerConfig(**SIZES, position_embedding_type=kind) for kind in SINUSOIDS}
CFG = KINDS["vaswani"]
rng = np.random.default_rng(0)
IDS, LABELS = rng.integers(3, 31, (3, 7)), rng.integers(3, 31, (3, 5))
MASK = (np.arange(7) < np.array([7, 2, 4])[:, None]).astype(np.int64)


@pytest.mark.parametrize("width", [7, 8])
def test_sinusoids(width):
    """Each number by the formula of SPEC's table."""
    v, m, f = (table(30, width) for table in (sinusoids.vaswani, sinusoids.marian, sinusoids.fairseq))
    half, sines = width // 2, (width + 1) // 2
    for p in (0, 1, 5, 29):
        for i in range(half):
            angle = p / 10000 ** (2 * i / width)
            assert v[p, 2 * i] == pytest.approx(math.sin(angle)) and v[p, 2 * i + 1] == pytest.approx(
                math.cos(angle)
            )
            assert m[p, i] == pytest.approx(math.sin(angle)) and m[p, sines + i] == pytest.approx(
                math.cos(angle)
            )
            angle = p * 10000 ** (-i / (half - 1))
            assert f[p, i] == pytest.approx(math.sin(angle)) and f[p, half + i] == pytest.approx(
                math.cos(angle)
            )
        if width % 2:
            assert f[p, -1] == 0 and v[p, -1] == m[p, half] == pytest.approx(
                math.sin(p / 10000 ** (2 * half / width))
            )


def test_fairseq_counts_tokens_and_not_padding():
    positions = SINUSOIDS["fairseq"](6, 4, "fairseq", 1)
    ids = Tensor([[1, 1, 5, 6], [7, 1, 8, 9]])
    x = positions(ids, padding.layout(ids, None)).numpy()
    table = sinusoids.fairseq(8, 4)
    assert not x[0, :2].any() and not x[1, 1].any()
    np.testing.assert_allclose(x[0, 2:], table[[2, 3]], atol=1e-6)
    np.testing.assert_allclose(x[1, [0, 2, 3]], table[[2, 3, 4]], atol=1e-6)
    with pytest.raises(IndexError):
        ids = Tensor([[5] * 7])
        positions(ids, padding.layout(ids, None))


def test_others_count_padding():
    ids = Tensor([[1, 1, 5]])
    x = SINUSOIDS["marian"](6, 4, "marian", 1)(ids, padding.layout(ids, None)).numpy()
    np.testing.assert_allclose(x[0], sinusoids.marian(3, 4), atol=1e-6)


def test_sizes_of_the_paper():
    """65 and 213 million, of which the paper's table depends on the vocabulary."""
    big = TransformerConfig(
        d_model=1024,
        encoder_ffn_dim=4096,
        decoder_ffn_dim=4096,
        encoder_attention_heads=16,
        decoder_attention_heads=16,
    )
    before = plm.memory_stats()["allocations"]
    counts = [models.count_parameters(c, "seq2seq-lm") for c in (TransformerConfig(), big)]
    assert plm.memory_stats()["allocations"] == before

    def blocks(C, F):
        attention, mlp, norm = 4 * (C * C + C), 2 * C * F + F + C, 2 * C
        return 6 * (attention + mlp + 2 * norm) + 6 * (2 * attention + mlp + 3 * norm)

    assert counts == [37000 * 512 + blocks(512, 2048), 37000 * 1024 + blocks(1024, 4096)]
    assert abs(counts[0] / 65e6 - 1) < 0.04 and abs(counts[1] / 213e6 - 1) < 0.01


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(
    "config",
    [
        CFG,
        MarianConfig(**SIZES, pad_token_id=30),
        CFG.replace(share_encoder_decoder_embeddings=False, decoder_vocab_size=20),
    ],
    ids=["vaswani", "marian", "two vocabularies"],
)
def test_every_head_has_names_and_its_count(head, config, tmp_path):
    lm = plm.from_config(config, head)
    assert lm.model.num_parameters() == models.count_parameters(config, head)
    written = names.published(transformer, lm.model)
    buffers = sum(b.size for _, b in lm.model.named_buffers())
    assert sum(t.size for t in written.values()) == lm.model.num_parameters() + buffers
    lm.save(tmp_path)
    again = plm.load(tmp_path)
    inputs = (
        dict(input_ids=IDS) if head == "causal-lm" and config.target_size > 30 else dict(input_ids=IDS % 20)
    )
    if head != "causal-lm":
        inputs["decoder_input_ids"] = LABELS % 20
    field = "last_hidden_state" if head == "base" else "logits"
    assert again.head == head and np.array_equal(
        lm.eval()(**inputs)[field].numpy(), again(**inputs)[field].numpy()
    )


def as_fairseq(tensors, joined):
    """The names of fairseq's checkpoints; the old ones have query, key and value in one tensor."""
    found = {name.removeprefix("model."): t.numpy() for name, t in tensors.items()}
    table = found.pop("shared.weight")
    found |= {f"{side}.embed_tokens.weight": table for side in ("encoder", "decoder")}
    found |= {f"{side}.version": np.array([3.0], np.float32) for side in ("encoder", "decoder")}
    found |= {
        f"{side}.embed_positions._float_tensor": np.zeros(1, np.float32) for side in ("encoder", "decoder")
    }
    if joined:
        for name in [n for n in found if ".q_proj." in n]:
            parts = [found.pop(name.replace("q_proj", f"{x}_proj")) for x in "qkv"]
            found[name.replace("q_proj.", "in_proj_")] = np.concatenate(parts)
    else:
        found["decoder.output_projection.weight"] = table
    return found


@pytest.mark.parametrize("joined", [False, True], ids=["new", "old"])
def test_names_of_fairseq(joined, tmp_path):
    lm = plm.from_config(KINDS["fairseq"], "seq2seq-lm").eval()
    lm.save(tmp_path)
    tensors, _ = plm.safetensors.read(tmp_path)
    plm.safetensors.write(tmp_path, as_fairseq(tensors, joined))
    again, inputs = plm.load(tmp_path), dict(input_ids=IDS, attention_mask=MASK, labels=LABELS)
    assert np.array_equal(lm(**inputs).logits.numpy(), again(**inputs).logits.numpy())
    assert again.model.num_parameters() == lm.model.num_parameters()
    again.save(tmp_path / "saved")
    assert set(plm.safetensors.read(tmp_path / "saved")[0]) == set(tensors)


def test_initialisation():
    plm.seed(0)
    model = models.build(
        CFG.replace(vocab_size=900, d_model=60, encoder_ffn_dim=200, decoder_ffn_dim=200), "seq2seq-lm"
    )
    for name, p in model.named_parameters():
        values = p.numpy()
        if name.endswith(("bias", "beta")):
            assert not values.any(), name
        elif name.endswith("gamma"):
            assert (values == 1).all(), name
        elif name == "body.shared.weight":
            assert abs(values.std() * math.sqrt(60) - 1) < 0.02 and not values[1].any()
        else:  # Glorot's bound; queries, keys and values each have their own
            bound = math.sqrt(6 / (60 + 60 if "mlp" not in name else 260))
            assert 0.97 * bound < np.abs(values).max() <= bound, name
    assert model.output.weight is model.body.shared.weight


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(kind):
    model = models.build(KINDS[kind]).eval()
    ids = np.where(MASK == 1, IDS, 1)
    with plm.no_grad():
        out = model(Tensor(ids), Tensor(MASK), Tensor(LABELS))
        alone = model(Tensor(IDS[1:2, :2].copy()), None, Tensor(LABELS[1:2].copy()))
        weights = model(Tensor(ids), Tensor(MASK), Tensor(LABELS), output_attentions=True)
    np.testing.assert_allclose(
        out.last_hidden_state.numpy()[1], alone.last_hidden_state.numpy()[0], atol=1e-5
    )
    np.testing.assert_allclose(out.last_hidden_state.numpy(), weights.last_hidden_state.numpy(), atol=1e-5)
    assert not out.encoder_last_hidden_state.numpy()[MASK == 0].any()


def test_positions_matter():
    outs = []
    for kind, config in KINDS.items():
        plm.seed(3)
        outs.append(models.build(config).eval()(Tensor(IDS), None, Tensor(LABELS)).last_hidden_state.numpy())
    assert all(np.abs(a - b).max() > 1e-3 for i, a in enumerate(outs) for b in outs[:i])


@pytest.mark.parametrize("kind", KINDS)
def test_trace_runs_at_other_sizes(kind):
    model = models.build(KINDS[kind], "seq2seq-lm").eval()
    specs = {
        name: plm.spec("int64", "B", size)
        for name, size in (("input_ids", "S"), ("attention_mask", "S"), ("labels", "T"))
    }
    with plm.no_grad():
        program = plm.trace(model, **specs)
        for B, S, T in ((1, 1, 1), (4, 9, 2), (2, 3, 8)):
            mask = (np.arange(S) < rng.integers(1, S + 1, (B, 1))).astype(np.int64)
            inputs = dict(
                input_ids=rng.integers(1, 31, (B, S)), attention_mask=mask, labels=rng.integers(3, 31, (B, T))
            )
            got, want = program(**inputs), model(**{k: Tensor(v) for k, v in inputs.items()})
            for field in ("loss", "logits"):
                np.testing.assert_allclose(got[field].numpy(), want[field].numpy(), atol=1e-5, err_msg=field)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_to_reverse(kind):
    plm.seed(1)
    lm = plm.from_config(KINDS[kind], "seq2seq-lm")
    opt = plm.optim.AdamW(lm.parameters(), lr=0.01)
    losses = []
    for _ in range(80):
        opt.zero_grad()
        loss = lm(input_ids=IDS, labels=IDS[:, ::-1].copy()).loss
        loss.backward()
        opt.step()
        losses.append(loss.item())
    assert losses[0] > 3 and losses[-1] < 0.3


def test_no_target():
    with pytest.raises(ValueError, match="decoder_input_ids are missing: pass them, or labels="):
        plm.from_config(CFG)(input_ids=IDS)


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            dict(position_embedding_type="rotary"),
            "position_embedding_type must be one of vaswani, marian, fairseq, got 'rotary'",
        ),
        (
            dict(decoder_vocab_size=9),
            "decoder_vocab_size must be vocab_size = 31 where embeddings are shared, got 9",
        ),
    ],
)
def test_bad_config(changes, message):
    with pytest.raises(ValueError, match=message):
        CFG.replace(**changes)
