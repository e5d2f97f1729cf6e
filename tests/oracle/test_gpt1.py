"""GPT against transformers, every head."""

import numpy as np
import plmcore as plm
import pytest
from oracle import parity  # skips where torch and transformers are not installed

torch = parity.torch
pytestmark = pytest.mark.oracle

OFF = dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, summary_first_dropout=0.0)
CONFIGS = {
    "odd": dict(vocab_size=53, n_embd=15, n_layer=3, n_head=3, n_positions=13, pad_token_id=0, **OFF),
    "wide": dict(
        vocab_size=40,
        n_embd=32,
        n_layer=2,
        n_head=1,
        n_positions=40,
        afn="relu",
        layer_norm_epsilon=1e-3,
        num_labels=4,
        pad_token_id=39,
        **OFF,
    ),
    "silu": dict(
        vocab_size=70,
        n_embd=20,
        n_layer=1,
        n_head=5,
        n_positions=16,
        afn="silu",
        tie_word_embeddings=False,
        pad_token_id=3,
        num_labels=3,
        **OFF,
    ),
}
SIDES = (None, "right", "left", "holes")
B, T, K = 4, 9, 3


def inputs(rng, config, side, shape=(B, T)):
    batch = {name: rng.integers(0, config["vocab_size"], shape) for name in ("input_ids", "token_type_ids")}
    if side:
        batch["attention_mask"] = parity.mask(rng, *shape, side)
        batch["input_ids"] = np.where(
            batch["attention_mask"] == 1, batch["input_ids"], config["pad_token_id"]
        )
    return batch


def next_tokens(rng, config, batch):
    """Labels anywhere, so on padding too, and those of the text: the first is predicted from the padding
    before it.
    """
    found = parity.labels(rng, config["vocab_size"], batch["input_ids"].shape)
    return [dict(labels=found), dict(labels=np.where(batch.get("attention_mask", 1) == 1, found, -100))]


HEADS = {
    "OpenAIGPTModel": lambda rng, config, batch: [],
    "OpenAIGPTLMHeadModel": next_tokens,
    "OpenAIGPTForSequenceClassification": lambda rng, config, batch: [
        dict(labels=rng.integers(0, config.get("num_labels", 2), B))
    ],
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("size", CONFIGS)
def test_heads(size, name, tmp_path):
    config = CONFIGS[size]
    rng = np.random.default_rng(len(name) + len(size))
    positions = np.stack([rng.permutation(T) for _ in range(B)])
    batches = [dict(input_ids=parity.ids(rng, config, B, T), position_ids=positions[:1])]
    for side in SIDES:
        batch = inputs(rng, config, side)
        batches += [batch, *({**batch, **labels} for labels in HEADS[name](rng, config, batch))]
    batches.append({**batch, "position_ids": positions})
    parity.check(name, config, batches, tmp_path)


@pytest.mark.parametrize("side", SIDES)
def test_double_heads(side, tmp_path):
    rng = np.random.default_rng(7)
    config = CONFIGS["odd"]
    # The reference wants the mask so, with a row for each choice.
    batch = inputs(rng, config, side, (B * K, T))
    for name in ("input_ids", "token_type_ids"):
        batch[name] = batch[name].reshape(B, K, T)
    tokens = dict(mc_token_ids=rng.integers(0, T, (B, K)))
    labels = dict(labels=parity.labels(rng, config["vocab_size"], (B, K, T)), mc_labels=rng.integers(0, K, B))
    batches = [batch, {**batch, **tokens}, {**batch, **labels}, {**batch, **tokens, **labels}]
    parity.check("OpenAIGPTDoubleHeadsModel", config, batches, tmp_path)


@pytest.mark.parametrize("name", ["OpenAIGPTLMHeadModel", "OpenAIGPTDoubleHeadsModel"])
def test_either_name_of_the_shared_table(name, tmp_path):
    """The two classes store it under different names; a file of one opens as the other, here and there."""
    rng = np.random.default_rng(8)
    parity.reference(name, CONFIGS["odd"], tmp_path / "a")
    stored = set(plm.safetensors.read(tmp_path / "a")[0])
    both = {"lm_head.weight", "transformer.tokens_embed.weight"}
    assert len(both & stored) == 1
    lm = plm.load(tmp_path / "a", head="causal-lm")
    assert set(lm.report.unused) == {n for n in stored if n.startswith("multiple_choice_head")}
    lm.save(tmp_path / "b")
    back = parity.load_reference("OpenAIGPTLMHeadModel", tmp_path / "b")
    batch = inputs(rng, CONFIGS["odd"], None)
    with torch.no_grad(), plm.no_grad():
        parity.same_output(lm(**batch), parity.theirs(back, batch), batch, 1e-5)


def test_a_sequence_of_padding(tmp_path):
    """All of it masked: it is still computed where a head reads it."""
    rng = np.random.default_rng(12)
    batch = inputs(rng, CONFIGS["odd"], "left")
    batch["attention_mask"][1] = 0
    batch["labels"] = parity.labels(rng, 53, (B, T))
    parity.check("OpenAIGPTLMHeadModel", CONFIGS["odd"], [batch], tmp_path)


@pytest.mark.parametrize(
    "name, fields", [("OpenAIGPTModel", ["last_hidden_state"]), ("OpenAIGPTLMHeadModel", ["logits", "loss"])]
)
@pytest.mark.parametrize("side", SIDES)
def test_trace(name, fields, side, tmp_path):
    rng = np.random.default_rng(16)
    parity.reference(name, CONFIGS["odd"], tmp_path)
    batches = [inputs(rng, CONFIGS["odd"], side, shape) for shape in ((3, 5), (2, 12), (7, 2))]
    if "loss" in fields:
        for batch in batches:
            batch["labels"] = parity.labels(rng, 53, batch["input_ids"].shape, 0.9)
    parity.check_trace(plm.load(tmp_path), batches, fields)
