"""mBART against transformers, every head."""

import numpy as np
import plmcore as plm
import pytest
from oracle import parity, seq2seq_inputs  # skips where torch and transformers are not installed

pytestmark = pytest.mark.oracle

CONFIGS = {
    "odd": dict(
        vocab_size=47,
        d_model=21,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=7,
        decoder_attention_heads=3,
        encoder_ffn_dim=10,
        decoder_ffn_dim=33,
        max_position_embeddings=13,
        scale_embedding=True,
        dropout=0.0,
        use_cache=False,
    ),
    "plain": dict(
        vocab_size=40,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=4,
        encoder_ffn_dim=24,
        decoder_ffn_dim=8,
        max_position_embeddings=20,
        activation_function="gelu_new",
        num_labels=4,
        dropout=0.0,
        use_cache=False,
    ),
}
NAMES = [
    "MBartModel",
    "MBartForConditionalGeneration",
    "MBartForSequenceClassification",
    "MBartForQuestionAnswering",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", CONFIGS)
def test_heads(size, name, tmp_path):
    config = CONFIGS[size]
    rng = np.random.default_rng(len(name) + len(size))
    batches = seq2seq_inputs.batches(rng, config, name, labels=config.get("num_labels", 2))
    parity.check(name, config, batches, tmp_path, hidden_by=seq2seq_inputs.HIDDEN_BY)


@pytest.mark.parametrize("side", [None, "right", "left"])
def test_causal_lm(side, tmp_path):
    batches = seq2seq_inputs.causal(np.random.default_rng(8), CONFIGS["odd"], side)
    parity.check("MBartForCausalLM", CONFIGS["odd"], batches, tmp_path, hidden_by=seq2seq_inputs.CAUSAL)


def test_the_language_token_moves_to_the_front():
    """Labels with padding at the end, as -100 and as the padding token 1, and inside."""
    model = plm.from_config(dict(model_type="mbart", **CONFIGS["odd"])).model
    labels = np.array([[5, 6, 7, 9], [5, 9, -100, -100], [5, 1, 8, 1]])
    shift = parity.transformers.models.mbart.modeling_mbart.shift_tokens_right
    assert np.array_equal(
        model.shifted(plm.Tensor(labels)).numpy(), shift(parity.torch.tensor(labels), 1).numpy()
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("side", [None, "left"])
def test_trace(name, side, tmp_path):
    rng = np.random.default_rng(13)
    parity.reference(name, CONFIGS["odd"], tmp_path)
    seq2seq_inputs.check_trace(rng, plm.load(tmp_path), CONFIGS["odd"], name, side)
