"""T5 against transformers, original and version 1.1, every head."""

import json

import numpy as np
import plmcore as plm
import pytest
from oracle import parity  # skips where torch and transformers are not installed
from plmcore import Tensor
from plmcore.models.position_buckets import buckets

torch = parity.torch
modeling = parity.transformers.models.t5.modeling_t5
pytestmark = pytest.mark.oracle

CONFIGS = {
    "original": dict(
        vocab_size=53,
        d_model=15,
        d_kv=4,
        d_ff=22,
        num_layers=2,
        num_decoder_layers=3,
        num_heads=3,
        relative_attention_num_buckets=6,
        relative_attention_max_distance=7,
    ),
    "v1.1": dict(
        vocab_size=40,
        d_model=12,
        d_kv=7,
        d_ff=19,
        num_layers=3,
        num_decoder_layers=2,
        num_heads=5,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
        layer_norm_epsilon=1e-5,
    ),
    "wide": dict(
        vocab_size=31,
        d_model=8,
        d_kv=32,
        d_ff=9,
        num_layers=1,
        num_heads=2,
        feed_forward_proj="gated-silu",
        relative_attention_num_buckets=9,
        relative_attention_max_distance=20,
        num_labels=3,
    ),
}
CONFIGS = {k: dict(v, dropout_rate=0.0, decoder_start_token_id=0) for k, v in CONFIGS.items()}
B, S, T = 4, 9, 6
DECODER = "decoder_attention_mask"
HIDDEN_BY = dict(
    logits=DECODER,
    last_hidden_state=DECODER,
    decoder_hidden_states=DECODER,
    decoder_attentions=DECODER,
    cross_attentions=DECODER,
    encoder_last_hidden_state="attention_mask",
    encoder_hidden_states="attention_mask",
    encoder_attentions="attention_mask",
)


@pytest.fixture
def exact_norms(monkeypatch):
    """The reference's norms round their statistics to float32; here they keep the dtype of their input."""

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))

    monkeypatch.setattr(modeling.T5LayerNorm, "forward", forward)


def source(rng, config, side, shape=(B, S)):
    batch = dict(input_ids=parity.ids(rng, config, *shape, low=2))
    if side:
        batch["attention_mask"] = parity.mask(rng, *shape, side)
    return batch


def with_targets(rng, config, batch, side="right"):
    """Ids for the decoder, with and without padding of their own."""
    shape = (len(batch["input_ids"]), T)
    batch = dict(batch, decoder_input_ids=parity.ids(rng, config, *shape))
    return [batch, dict(batch, **{DECODER: parity.mask(rng, *shape, side or "right")})]


@pytest.mark.parametrize("size", CONFIGS)
def test_base(size, tmp_path, exact_norms):
    rng, config = np.random.default_rng(1), CONFIGS[size]
    sides = (None, "right", "left", "holes")
    batches = [b for side in sides for b in with_targets(rng, config, source(rng, config, side), side)]
    lm = parity.check("T5Model", config, batches, tmp_path, head="base", hidden_by=HIDDEN_BY)
    for mask in (
        [[0, 1, 1, 0, 1, 1]] * B,
        [[1, 0, 1, 1, 0, 0]] * B,
    ):  # seen positions, though a decoder's padding is to the right
        batch = dict(batches[0], **{DECODER: np.array(mask)})
        with torch.no_grad(), plm.no_grad():
            model = parity.load_reference("T5Model", tmp_path / "published")
            parity.same_output(lm(**batch), parity.theirs(model, batch), batch, 1e-5, HIDDEN_BY)


@pytest.mark.parametrize("size", CONFIGS)
def test_seq2seq_lm(size, tmp_path, exact_norms):
    rng, config = np.random.default_rng(2), CONFIGS[size]
    batches = []
    for side in (None, "right", "left", "holes"):
        batch = source(rng, config, side)
        labels = parity.labels(rng, config["vocab_size"], (B, T), 0.7)
        plain, padded = with_targets(rng, config, batch, side)
        seen = np.where(padded[DECODER] == 1, labels, -100)
        batches += [plain, padded, dict(batch, labels=labels), dict(padded, labels=seen)]
        batches += [dict(padded, labels=labels)]  # on masked positions too
    parity.check(
        "T5ForConditionalGeneration", config, batches, tmp_path, head="seq2seq-lm", hidden_by=HIDDEN_BY
    )


def test_float32_norms_of_the_reference(tmp_path):
    rng, config = np.random.default_rng(3), CONFIGS["original"]
    batch = dict(source(rng, config, "right"), labels=parity.labels(rng, 53, (B, T)))
    name = "T5ForConditionalGeneration"
    parity.check(name, config, [batch], tmp_path, hidden_by=HIDDEN_BY, float64=1e-6, gradient64=1e-5)


@pytest.mark.parametrize("size", CONFIGS)
def test_encoder(size, tmp_path, exact_norms):
    rng, config = np.random.default_rng(4), CONFIGS[size]
    batches = [source(rng, config, side) for side in (None, "right", "left", "holes")]
    parity.check("T5EncoderModel", config, batches, tmp_path, head="base-encoder")


@pytest.mark.parametrize("size", CONFIGS)
def test_sequence_classification(size, tmp_path, exact_norms):
    rng, config, batches = np.random.default_rng(5), CONFIGS[size], []
    for side in (None, "right", "left"):
        batch = source(rng, config, side)
        for row, position in zip(batch["input_ids"], rng.permutation(S)):
            row[[position, position - 1]] = 1  # ends of sentences, of which the last counts
        labels = rng.integers(0, config.get("num_labels", 2), B)
        batches += [batch, dict(batch, labels=labels)]
    hidden_by = dict(HIDDEN_BY, logits=None)
    parity.check("T5ForSequenceClassification", config, batches, tmp_path, hidden_by=hidden_by)


@pytest.mark.parametrize("size", CONFIGS)
def test_token_classification(size, tmp_path, exact_norms):
    rng, config, batches = np.random.default_rng(6), CONFIGS[size], []
    for side in (None, "right", "left", "holes"):
        batch = source(rng, config, side)
        labels = parity.labels(rng, config.get("num_labels", 2), (B, S))
        seen = np.where(batch.get("attention_mask", 1) == 1, labels, -100)
        batches += [batch, dict(batch, labels=labels), dict(batch, labels=seen)]
    parity.check("T5ForTokenClassification", config, batches, tmp_path)


@pytest.mark.parametrize("size", ["original", "v1.1"])
def test_question_answering(size, tmp_path, exact_norms):
    rng, config, batches = np.random.default_rng(7), CONFIGS[size], []
    for side in (None, "right", "left", "holes"):
        batch = source(rng, config, side)
        answer = dict(start_positions=rng.integers(0, S + 3, B), end_positions=rng.integers(-1, S, B))
        batches += [batch, dict(batch, **answer)]
    parity.check("T5ForQuestionAnswering", config, batches, tmp_path, hidden_by=HIDDEN_BY)


@pytest.mark.parametrize("tie", [False, True, None])
@pytest.mark.parametrize("own_head", [False, True])
def test_what_the_file_holds_decides_tying_and_config_json_scaling(tie, own_head, tmp_path):
    """The published directories of version 1.1 say tie_word_embeddings = false and hold an lm_head; the first
    ones say nothing.
    """
    rng, config, name = np.random.default_rng(8), CONFIGS["v1.1"], "T5ForConditionalGeneration"
    parity.reference(name, config, tmp_path / "a")
    tensors, _ = plm.safetensors.read(tmp_path / "a")
    tensors = {k: Tensor(v.numpy().copy()) for k, v in tensors.items()}
    if own_head:
        tensors["lm_head.weight"] = Tensor(rng.standard_normal((40, 12)).astype(np.float32))
    plm.safetensors.write(tmp_path / "a" / "model.safetensors", tensors, {"format": "pt"})
    values = json.loads((tmp_path / "a" / "config.json").read_text())
    del values["scale_decoder_outputs"], values["tie_word_embeddings"]
    if tie is not None:
        values["tie_word_embeddings"] = tie
    (tmp_path / "a" / "config.json").write_text(json.dumps(values))

    model, lm = parity.load_reference(name, tmp_path / "a"), plm.load(tmp_path / "a")
    assert model.config.scale_decoder_outputs == lm.config.scales == (tie is not False)
    assert (lm.model.lm_head.weight is not lm.model.body.tokens.weight) == own_head
    assert lm.model.num_parameters() == sum(p.numel() for p in model.parameters())
    lm.save(tmp_path / "b")
    batch = dict(source(rng, config, "right"), labels=parity.labels(rng, 40, (B, T)))
    with torch.no_grad(), plm.no_grad():
        for other in (model, parity.load_reference(name, tmp_path / "b")):
            parity.same_output(lm(**batch), parity.theirs(other, batch), batch, 1e-5, HIDDEN_BY)


def test_stacks_with_tables_of_their_own(tmp_path):
    rng, config = np.random.default_rng(9), CONFIGS["original"]
    parity.reference("T5Model", config, tmp_path)
    tensors, _ = plm.safetensors.read(tmp_path)
    tensors = {k: Tensor(v.numpy().copy()) for k, v in tensors.items()}
    tensors["decoder.embed_tokens.weight"] = Tensor(rng.standard_normal((53, 15)).astype(np.float32))
    plm.safetensors.write(tmp_path / "model.safetensors", tensors, {"format": "pt"})
    batch = with_targets(rng, config, source(rng, config, None))[0]
    model, lm = parity.load_reference("T5Model", tmp_path), plm.load(tmp_path)
    with torch.no_grad(), plm.no_grad():
        parity.same_output(lm(**batch), parity.theirs(model, batch), batch, 1e-5, HIDDEN_BY)


@pytest.mark.parametrize("n, most", [(32, 128), (32, 256), (16, 64), (7, 20)])
@pytest.mark.parametrize("both_ways", [True, False])
def test_buckets(n, most, both_ways):
    distance = torch.arange(-1100, 1101)
    expected = modeling.T5Attention._relative_position_bucket(distance, both_ways, n, most)
    got = buckets(Tensor(distance.numpy().astype(np.float32)), n, most, both_ways)
    np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize("side", [None, "right", "left", "holes"])
def test_trace(side, tmp_path):
    rng, config = np.random.default_rng(10), CONFIGS["v1.1"]
    parity.reference("T5ForConditionalGeneration", config, tmp_path)
    batches = []
    for b, s, t in ((3, 7, 5), (2, 40, 30), (6, 1, 1)):
        labels = parity.labels(rng, 40, (b, t))
        batches.append(dict(source(rng, config, side, (b, s)), labels=labels))
    parity.check_trace(plm.load(tmp_path), batches, ["logits", "loss", "encoder_last_hidden_state"])
