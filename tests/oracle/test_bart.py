"""BART against transformers, every head."""

import numpy as np
import plmcore as plm
import pytest
from oracle import parity, seq2seq_inputs  # skips where torch and transformers are not installed

torch = parity.torch
pytestmark = pytest.mark.oracle

SMALL = dict(dropout=0.0, use_cache=False)
CONFIGS = {
    "odd": dict(
        vocab_size=53,
        d_model=15,
        encoder_layers=3,
        decoder_layers=2,
        encoder_attention_heads=3,
        decoder_attention_heads=5,
        encoder_ffn_dim=22,
        decoder_ffn_dim=31,
        max_position_embeddings=13,
        **SMALL,
    ),
    "scaled": dict(
        vocab_size=40,
        d_model=32,
        encoder_layers=1,
        decoder_layers=3,
        encoder_attention_heads=1,
        decoder_attention_heads=4,
        encoder_ffn_dim=9,
        decoder_ffn_dim=64,
        max_position_embeddings=40,
        activation_function="relu",
        scale_embedding=True,
        num_labels=4,
        **SMALL,
    ),
}
NAMES = [
    "BartModel",
    "BartForConditionalGeneration",
    "BartForSequenceClassification",
    "BartForQuestionAnswering",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", CONFIGS)
def test_heads(size, name, tmp_path):
    config = CONFIGS[size]
    rng = np.random.default_rng(len(name) + len(size))
    batches = seq2seq_inputs.batches(rng, config, name, labels=config.get("num_labels", 3))
    parity.check(name, config, batches, tmp_path, hidden_by=seq2seq_inputs.HIDDEN_BY)


@pytest.mark.parametrize("side", [None, "right", "left", "holes"])
def test_causal_lm(side, tmp_path):
    rng = np.random.default_rng(8)
    parity.check(
        "BartForCausalLM",
        CONFIGS["odd"],
        seq2seq_inputs.causal(rng, CONFIGS["odd"], side),
        tmp_path,
        hidden_by=seq2seq_inputs.CAUSAL,
    )


def test_a_decoder_alone_from_the_whole_model(tmp_path):
    rng = np.random.default_rng(9)
    parity.reference("BartForConditionalGeneration", CONFIGS["odd"], tmp_path)
    whole, alone = plm.load(tmp_path), plm.load(tmp_path, head="causal-lm")
    tokens = alone.model.body.decoder.embeddings.tokens.weight
    assert np.array_equal(tokens.numpy(), whole.model.body.shared.weight.numpy())
    assert alone.model.output.weight is tokens and alone(
        input_ids=parity.ids(rng, CONFIGS["odd"], 2, 5)
    ).logits.shape == (2, 5, 53)


@pytest.mark.parametrize("problem", ["regression", "multi_label_classification"])
def test_other_losses_of_sequences(problem, tmp_path):
    rng = np.random.default_rng(10)
    n = 1 if problem == "regression" else 4
    config = {**CONFIGS["odd"], "num_labels": n}
    batch = seq2seq_inputs.with_eos(rng, config, "right")
    labels = rng.random((seq2seq_inputs.B, n)) if n == 1 else rng.integers(0, 2, (seq2seq_inputs.B, n))
    batch["labels"] = labels.astype(np.float32)[:, 0] if n == 1 else labels.astype(np.float32)
    parity.check(
        "BartForSequenceClassification", config, [batch], tmp_path, hidden_by=seq2seq_inputs.HIDDEN_BY
    )


@pytest.mark.parametrize("name", ["BartModel", "BartForConditionalGeneration"])
def test_four_tables_when_they_are_not_tied(name, tmp_path):
    rng = np.random.default_rng(11)
    config = {**CONFIGS["odd"], "tie_word_embeddings": False}
    batches = seq2seq_inputs.batches(rng, config, name)[-2:]
    lm = parity.check(name, config, batches, tmp_path, hidden_by=seq2seq_inputs.HIDDEN_BY)
    assert lm.model.num_parameters() >= 3 * 53 * 15


@pytest.mark.parametrize(
    "stored", ["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"]
)
def test_the_table_under_another_name(stored, tmp_path):
    rng = np.random.default_rng(12)
    parity.reference("BartForConditionalGeneration", CONFIGS["odd"], tmp_path)
    batch = seq2seq_inputs.batches(rng, CONFIGS["odd"], "BartForConditionalGeneration")[-1]
    want = plm.load(tmp_path)(**batch).logits.numpy()
    tensors, _ = plm.safetensors.read(tmp_path)
    tensors = {k: v.numpy().copy() for k, v in tensors.items()}
    tensors[stored] = tensors.pop("model.shared.weight")
    plm.safetensors.write(tmp_path / "model.safetensors", {k: plm.Tensor(v) for k, v in tensors.items()})
    lm = plm.load(tmp_path)
    assert np.array_equal(lm(**batch).logits.numpy(), want)
    assert lm.model.output.weight is lm.model.body.encoder.embeddings.tokens.weight


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("side", [None, "right", "left", "holes"])
def test_trace(name, side, tmp_path):
    rng = np.random.default_rng(13)
    parity.reference(name, CONFIGS["odd"], tmp_path)
    seq2seq_inputs.check_trace(rng, plm.load(tmp_path), CONFIGS["odd"], name, side)
