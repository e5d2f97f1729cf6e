"""BERT against transformers, every head."""

import numpy as np
import plmcore as plm
import pytest
from oracle import parity  # skips where torch and transformers are not installed

torch = parity.torch
pytestmark = pytest.mark.oracle

SMALL = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
CONFIGS = {
    "odd": dict(
        vocab_size=53,
        hidden_size=15,
        num_hidden_layers=3,
        num_attention_heads=3,
        intermediate_size=22,
        max_position_embeddings=13,
        type_vocab_size=3,
        **SMALL,
    ),
    "wide": dict(
        vocab_size=40,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=1,
        intermediate_size=9,
        max_position_embeddings=40,
        hidden_act="gelu_new",
        layer_norm_eps=1e-5,
        **SMALL,
    ),
    "relu": dict(
        vocab_size=70,
        hidden_size=20,
        num_hidden_layers=1,
        num_attention_heads=5,
        intermediate_size=64,
        max_position_embeddings=16,
        hidden_act="relu",
        pad_token_id=None,
        num_labels=4,
        **SMALL,
    ),
}
B, T = 4, 9


def inputs(rng, config, side, shape=(B, T)):
    batch = dict(input_ids=rng.integers(0, config["vocab_size"], shape))
    batch["token_type_ids"] = rng.integers(0, config.get("type_vocab_size", 2), shape)
    if side:
        batch["attention_mask"] = parity.mask(rng, *shape, side)
    return batch


def per_token(size):
    """Labels anywhere, so on masked positions too, and labels on seen positions only."""

    def make(rng, config, batch):
        found = parity.labels(rng, size(config), batch["input_ids"].shape)
        return [dict(labels=found), dict(labels=np.where(batch.get("attention_mask", 1) == 1, found, -100))]

    return make


def per_sequence(size):
    return lambda rng, config, batch: [dict(labels=rng.integers(0, size(config), B))]


def num_labels(config):
    return config.get("num_labels", 2)


HEADS = {
    "BertModel": lambda rng, config, batch: [],
    "BertForMaskedLM": per_token(lambda config: config["vocab_size"]),
    "BertForPreTraining": lambda rng, config, batch: [
        dict(x, next_sentence_label=rng.integers(0, 2, B))
        for x in per_token(lambda c: c["vocab_size"])(rng, config, batch)
    ],
    "BertForNextSentencePrediction": per_sequence(lambda config: 2),
    "BertForSequenceClassification": per_sequence(num_labels),
    "BertForTokenClassification": per_token(num_labels),
    "BertForQuestionAnswering": lambda rng, config, batch: [
        dict(start_positions=rng.integers(0, T + 3, B), end_positions=rng.integers(-1, T, B))
    ],
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("size", CONFIGS)
def test_heads(size, name, tmp_path):
    config = CONFIGS[size]
    if name == "BertForQuestionAnswering":
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
    parity.check(
        "BertForMultipleChoice", CONFIGS["odd"], [batch, dict(batch, labels=rng.integers(0, 3, B))], tmp_path
    )


@pytest.mark.parametrize("decoder", [True, False])
@pytest.mark.parametrize("side", [None, "right", "left", "holes"])
def test_causal_lm(side, decoder, tmp_path):
    """The first token of a text padded on the left is predicted from the padding before it."""
    rng = np.random.default_rng(8)
    config = {**CONFIGS["odd"], "is_decoder": decoder, "use_cache": False}
    batch = inputs(rng, config, side)
    labels = per_token(lambda config: config["vocab_size"])(rng, config, batch)
    parity.check("BertLMHeadModel", config, [batch, *(dict(batch, **some) for some in labels)], tmp_path)


@pytest.mark.parametrize("problem", ["regression", "regression of 3", "multi_label_classification"])
def test_other_losses_of_sequences(problem, tmp_path):
    rng = np.random.default_rng(9)
    n = 1 if problem == "regression" else 3
    config = {**CONFIGS["odd"], "num_labels": n}
    if n == 3:
        config["problem_type"] = problem.partition(" ")[0]
    batch = inputs(rng, config, "right")
    target = (
        rng.random((B, n)).astype(np.float32) if "regression" in problem else rng.integers(0, 2, (B, n)) * 1.0
    )
    batch["labels"] = target.astype(np.float32)[:, 0] if n == 1 else target.astype(np.float32)
    parity.check("BertForSequenceClassification", config, [batch], tmp_path)


@pytest.mark.parametrize("tie", [True, False])
def test_untied_when_the_file_holds_two_tables(tie, tmp_path):
    rng = np.random.default_rng(10)
    model = parity.reference(
        "BertForMaskedLM", {**CONFIGS["odd"], "tie_word_embeddings": False}, tmp_path / "a"
    )
    batch = inputs(rng, CONFIGS["odd"], "right")
    lm = plm.load(tmp_path / "a", tie_word_embeddings=tie)  # what the file holds decides
    lm.save(tmp_path / "b")
    back = parity.load_reference("BertForMaskedLM", tmp_path / "b")
    with torch.no_grad(), plm.no_grad():
        for one in (model, back):
            parity.same_output(lm(**batch), parity.theirs(one, batch), batch, 1e-5)


@pytest.mark.parametrize(
    "name, fields",
    [("BertModel", ["last_hidden_state", "pooler_output"]), ("BertForMaskedLM", ["logits", "loss"])],
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
