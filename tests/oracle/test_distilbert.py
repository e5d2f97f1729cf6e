"""DistilBERT against transformers, every head."""

import numpy as np
import plmcore as plm
import pytest
from oracle import parity  # skips where torch and transformers are not installed

torch = parity.torch
pytestmark = pytest.mark.oracle

SMALL = dict(dropout=0.0, attention_dropout=0.0, qa_dropout=0.0, seq_classif_dropout=0.0)
CONFIGS = {
    "odd": dict(
        vocab_size=53, dim=15, n_layers=3, n_heads=3, hidden_dim=22, max_position_embeddings=13, **SMALL
    ),
    "wide": dict(
        vocab_size=40,
        dim=32,
        n_layers=2,
        n_heads=1,
        hidden_dim=9,
        max_position_embeddings=40,
        sinusoidal_pos_embds=True,
        **SMALL,
    ),
    "relu": dict(
        vocab_size=70,
        dim=20,
        n_layers=1,
        n_heads=5,
        hidden_dim=64,
        max_position_embeddings=16,
        activation="relu",
        pad_token_id=None,
        num_labels=4,
        **SMALL,
    ),
}
B, T = 4, 9


def inputs(rng, config, side, shape=(B, T)):
    batch = dict(input_ids=rng.integers(0, config["vocab_size"], shape))
    if side:
        batch["attention_mask"] = parity.mask(rng, *shape, side)
    return batch


def per_token(size):
    """Labels anywhere, so on masked positions too, and labels on seen positions only."""

    def make(rng, config, batch):
        found = parity.labels(rng, size(config), batch["input_ids"].shape)
        return [dict(labels=found), dict(labels=np.where(batch.get("attention_mask", 1) == 1, found, -100))]

    return make


def num_labels(config):
    return config.get("num_labels", 2)


HEADS = {
    "DistilBertModel": lambda rng, config, batch: [],
    "DistilBertForMaskedLM": per_token(lambda config: config["vocab_size"]),
    "DistilBertForSequenceClassification": lambda rng, config, batch: [
        dict(labels=rng.integers(0, num_labels(config), B))
    ],
    "DistilBertForTokenClassification": per_token(num_labels),
    "DistilBertForQuestionAnswering": lambda rng, config, batch: [
        dict(start_positions=rng.integers(0, T + 3, B), end_positions=rng.integers(-1, T, B))
    ],
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("size", CONFIGS)
def test_heads(size, name, tmp_path):
    config = CONFIGS[size]
    if name == "DistilBertForQuestionAnswering":
        config = {**config, "num_labels": 2}
    rng = np.random.default_rng(len(name) + len(size))
    batches = [dict(input_ids=parity.ids(rng, config, B, T), position_ids=rng.permutation(T)[None])]
    for side in (None, "right", "left", "holes"):
        batch = inputs(rng, config, side)
        batches += [batch, *({**batch, **labels} for labels in HEADS[name](rng, config, batch))]
    parity.check(name, config, batches, tmp_path)


@pytest.mark.parametrize("side", [None, "right", "left"])
def test_multiple_choice(side, tmp_path):
    rng = np.random.default_rng(7)
    batch = {k: v.reshape(B, 3, T) for k, v in inputs(rng, CONFIGS["odd"], side, (B * 3, T)).items()}
    batches = [batch, dict(batch, labels=rng.integers(0, 3, B))]
    parity.check("DistilBertForMultipleChoice", CONFIGS["odd"], batches, tmp_path)


@pytest.mark.parametrize("problem", ["regression", "regression of 3", "multi_label_classification"])
def test_other_losses_of_sequences(problem, tmp_path):
    rng = np.random.default_rng(9)
    n = 1 if problem == "regression" else 3
    config = {**CONFIGS["odd"], "num_labels": n}
    if n == 3:
        config["problem_type"] = problem.partition(" ")[0]
    batch = inputs(rng, config, "right")
    target = rng.random((B, n)) if "regression" in problem else rng.integers(0, 2, (B, n))
    batch["labels"] = target.astype(np.float32)[:, 0] if n == 1 else target.astype(np.float32)
    parity.check("DistilBertForSequenceClassification", config, [batch], tmp_path)


@pytest.mark.parametrize("dim", [15, 32])
def test_sinusoids_of_a_fresh_model(dim):
    config = dict(CONFIGS["odd"], dim=dim, n_heads=1, sinusoidal_pos_embds=True)
    model = parity.transformers.DistilBertModel(parity.transformers.DistilBertConfig(**config))
    ours = plm.from_config(dict(config, model_type="distilbert")).model.embeddings.positions.weight
    parity.near("positions", ours.numpy(), model.embeddings.position_embeddings.weight.detach().numpy(), 1e-7)


def test_untied_tables(tmp_path):
    rng = np.random.default_rng(10)
    config = {**CONFIGS["odd"], "tie_word_embeddings": False}
    batch = inputs(rng, config, "right")
    batches = [batch, dict(batch, labels=parity.labels(rng, 53, (B, T)))]
    parity.check("DistilBertForMaskedLM", config, batches, tmp_path)


@pytest.mark.parametrize(
    "name, fields",
    [
        ("DistilBertModel", ["last_hidden_state"]),
        ("DistilBertForMaskedLM", ["logits", "loss"]),
        ("DistilBertForSequenceClassification", ["logits"]),
    ],
)
@pytest.mark.parametrize("side", [None, "right", "left", "holes"])
def test_trace(name, fields, side, tmp_path):
    rng = np.random.default_rng(11)
    parity.reference(name, CONFIGS["odd"], tmp_path)
    batches = [inputs(rng, CONFIGS["odd"], side, shape) for shape in ((3, 5), (2, 12), (7, 1))]
    if "loss" in fields:
        for batch in batches:
            batch["labels"] = parity.labels(rng, 53, batch["input_ids"].shape)
    parity.check_trace(plm.load(tmp_path), batches, fields)
