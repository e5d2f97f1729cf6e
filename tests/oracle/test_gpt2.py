"""GPT-2 against transformers, every head."""

import numpy as np
import plmcore as plm
import pytest
from oracle import parity  # skips where torch and transformers are not installed

torch = parity.torch
pytestmark = pytest.mark.oracle

OFF = dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, summary_first_dropout=0.0)
CONFIGS = {
    "odd": dict(
        vocab_size=53, n_embd=15, n_layer=3, n_head=3, n_inner=22, n_positions=13, pad_token_id=0, **OFF
    ),
    "wide": dict(
        vocab_size=40,
        n_embd=32,
        n_layer=2,
        n_head=1,
        n_positions=40,
        activation_function="gelu",
        layer_norm_epsilon=1e-3,
        scale_attn_weights=False,
        num_labels=4,
        pad_token_id=39,
        **OFF,
    ),
    "relu": dict(
        vocab_size=70,
        n_embd=20,
        n_layer=2,
        n_head=5,
        n_inner=9,
        n_positions=16,
        activation_function="relu",
        scale_attn_by_inverse_layer_idx=True,
        tie_word_embeddings=False,
        pad_token_id=3,
        num_labels=3,
        **OFF,
    ),
}
SIDES = (None, "right", "left", "holes")
B, T, K = 4, 9, 3


def inputs(rng, config, side, shape=(B, T), types=True):
    batch = dict(input_ids=rng.integers(0, config["vocab_size"], shape))
    if types:
        batch["token_type_ids"] = rng.integers(0, config["vocab_size"], shape)
    if side:
        batch["attention_mask"] = parity.mask(rng, *shape, side)
        batch["input_ids"] = np.where(
            batch["attention_mask"] == 1, batch["input_ids"], config["pad_token_id"]
        )
    return batch


def per_token(size):
    """Labels anywhere, so on padding too, and those of the text: the first is predicted from the padding
    before it.
    """

    def make(rng, config, batch):
        found = parity.labels(rng, size(config), batch["input_ids"].shape)
        return [dict(labels=found), dict(labels=np.where(batch.get("attention_mask", 1) == 1, found, -100))]

    return make


def num_labels(config):
    return config.get("num_labels", 2)


HEADS = {
    "GPT2Model": lambda rng, config, batch: [],
    "GPT2LMHeadModel": per_token(lambda config: config["vocab_size"]),
    "GPT2ForSequenceClassification": lambda rng, config, batch: [
        dict(labels=rng.integers(0, num_labels(config), B))
    ],
    "GPT2ForTokenClassification": per_token(num_labels),
    "GPT2ForQuestionAnswering": lambda rng, config, batch: [
        dict(start_positions=np.r_[2, rng.integers(0, T + 3, B - 1)], end_positions=rng.integers(-1, T, B))
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
    batches.append({**batch, "position_ids": positions})  # that does not change who sees whom
    parity.check(name, config, batches, tmp_path)


@pytest.mark.parametrize("side", SIDES)
def test_double_heads(side, tmp_path):
    rng = np.random.default_rng(7)
    config = CONFIGS["odd"]
    batch = {k: v.reshape(B, K, T) for k, v in inputs(rng, config, side, (B * K, T)).items()}
    tokens = dict(mc_token_ids=rng.integers(0, T, (B, K)))
    labels = dict(labels=parity.labels(rng, config["vocab_size"], (B, K, T)), mc_labels=rng.integers(0, K, B))
    flat = {k: v[0] for k, v in batch.items()}  # the choices of one question, without a batch
    batches = [batch, {**batch, **tokens}, {**batch, **labels}, {**batch, **tokens, **labels}]
    batches += [{**flat, "mc_labels": labels["mc_labels"][:1], "labels": labels["labels"][0]}]
    parity.check("GPT2DoubleHeadsModel", config, batches, tmp_path)


@pytest.mark.parametrize(
    "summary",
    [
        dict(summary_type="last", summary_activation="tanh"),
        dict(summary_type="first"),
        dict(summary_type="mean", summary_activation="relu"),
        dict(summary_proj_to_labels=False, summary_activation="tanh"),
        dict(summary_use_proj=False),
    ],
    ids=lambda summary: " ".join(map(str, summary.values())),
)
@pytest.mark.parametrize("side", SIDES)
def test_summaries(summary, side, tmp_path):
    rng = np.random.default_rng(8)
    config = {**CONFIGS["odd"], **summary}
    one_number = "summary_type" in summary  # for each choice; else a vector as wide as the model
    mc_labels = rng.integers(0, B, 1) if one_number else rng.integers(0, config["n_embd"], B)
    batch = dict(inputs(rng, config, side), labels=parity.labels(rng, 53, (B, T)), mc_labels=mc_labels)
    parity.check("GPT2DoubleHeadsModel", config, [batch], tmp_path)


@pytest.mark.parametrize("problem", ["regression", "regression of 3", "multi_label_classification"])
def test_other_losses_of_sequences(problem, tmp_path):
    rng = np.random.default_rng(9)
    n = 1 if problem == "regression" else 3
    config = {**CONFIGS["odd"], "num_labels": n}
    if n == 3:
        config["problem_type"] = problem.partition(" ")[0]
    batch = inputs(rng, config, "right")
    target = rng.random((B, n)) if "regression" in problem else rng.integers(0, 2, (B, n)) * 1.0
    batch["labels"] = target.astype(np.float32)[:, 0] if n == 1 else target.astype(np.float32)
    parity.check("GPT2ForSequenceClassification", config, [batch], tmp_path)


def test_classification_without_a_padding_token(tmp_path):
    rng = np.random.default_rng(10)
    config = {**CONFIGS["odd"], "pad_token_id": None}
    batch = dict(input_ids=parity.ids(rng, config, 1, T), labels=np.array([1]))
    lm = parity.check("GPT2ForSequenceClassification", config, [batch], tmp_path)
    with pytest.raises(ValueError, match="2 sequences, and the config has no pad_token_id"):
        lm(input_ids=parity.ids(rng, config, 2, T))


def test_classification_where_padding_is_all_there_is(tmp_path):
    """Tokens decide what is padding, not the mask; a row of padding is judged by its first token."""
    rng = np.random.default_rng(11)
    ids = parity.ids(rng, CONFIGS["odd"], B, T)
    ids[0], ids[1, 5:], ids[2, :4], ids[3, 2:7] = 0, 0, 0, 0
    mask = parity.mask(rng, B, T, "left")
    batches = [dict(input_ids=ids), dict(input_ids=ids, attention_mask=mask)]
    parity.check("GPT2ForSequenceClassification", CONFIGS["odd"], batches, tmp_path)


def test_a_sequence_of_padding(tmp_path):
    """All of it masked: it is still computed where a head reads it."""
    rng = np.random.default_rng(12)
    batch = inputs(rng, CONFIGS["odd"], "left")
    batch["attention_mask"][1] = 0
    batch["labels"] = parity.labels(rng, 53, (B, T))
    parity.check("GPT2LMHeadModel", CONFIGS["odd"], [batch], tmp_path)


def test_reordered_and_upcast_attention(tmp_path):
    """The same numbers in float32; the reference has no float64 for it."""
    rng = np.random.default_rng(13)
    config = {**CONFIGS["odd"], "reorder_and_upcast_attn": True, "scale_attn_by_inverse_layer_idx": True}
    model, batch = parity.reference("GPT2LMHeadModel", config, tmp_path), inputs(rng, config, "right")
    lm = plm.load(tmp_path)
    assert lm.config.reorder_and_upcast_attn
    with torch.no_grad(), plm.no_grad():
        parity.same_output(lm(**batch), parity.theirs(model, batch), batch, 1e-5)


def test_old_files(tmp_path):
    """As the published gpt2 file: no prefix, no head, buffers among the weights."""
    rng = np.random.default_rng(14)
    model = parity.reference("GPT2LMHeadModel", CONFIGS["odd"], tmp_path)
    tensors, _ = plm.safetensors.read(tmp_path)
    old = {name.removeprefix("transformer."): t for name, t in tensors.items()}
    assert "wte.weight" in old and "lm_head.weight" not in old
    for i in range(3):
        old[f"h.{i}.attn.bias"] = plm.Tensor(np.tril(np.ones((1, 1, 13, 13), np.float32)))
        old[f"h.{i}.attn.masked_bias"] = plm.Tensor(np.float32(-1e4))
    plm.safetensors.write(tmp_path / "model.safetensors", old)
    batch = inputs(rng, CONFIGS["odd"], "right")
    with torch.no_grad(), plm.no_grad():
        parity.same_output(plm.load(tmp_path)(**batch), parity.theirs(model, batch), batch, 1e-5)


def test_cached_decoding(tmp_path):
    """Token by token with keys and values kept, as the reference does it."""
    rng = np.random.default_rng(15)
    model = parity.reference("GPT2LMHeadModel", CONFIGS["odd"], tmp_path)
    ids = parity.ids(rng, CONFIGS["odd"], B, T)
    lm, first = plm.load(tmp_path).model, plm.Tensor(np.zeros((B, 1), np.int64))
    with torch.no_grad(), plm.no_grad():
        past = state = None
        for start, stop in ((0, 4), (4, 5), (5, 6), (6, 7)):
            there = model(torch.tensor(ids[:, start:stop]), past_key_values=past, use_cache=True)
            past = there.past_key_values
            now = plm.Tensor(ids[:, start:stop].copy())
            here, state = (
                lm.prefill(now) if state is None else lm.step(now, state.select(None, first).reserve(1))
            )
            parity.near("logits", here.numpy().reshape(B, -1), there.logits.numpy()[:, -1], 1e-5)


@pytest.mark.parametrize(
    "name, fields, labels",
    [
        ("GPT2Model", ["last_hidden_state"], None),
        ("GPT2LMHeadModel", ["logits", "loss"], "tokens"),
        ("GPT2ForSequenceClassification", ["logits", "loss"], "sequences"),
        ("GPT2ForQuestionAnswering", ["start_logits", "end_logits"], None),
    ],
)
@pytest.mark.parametrize("side", SIDES)
def test_trace(name, fields, labels, side, tmp_path):
    rng = np.random.default_rng(16)
    parity.reference(name, CONFIGS["odd"], tmp_path)
    batches = [inputs(rng, CONFIGS["odd"], side, shape) for shape in ((3, 5), (2, 12), (7, 1))]
    for batch in batches[: 3 if labels == "sequences" else 2]:  # one token has none to predict
        shape = batch["input_ids"].shape
        if labels:
            batch["labels"] = (
                parity.labels(rng, 53, shape) if labels == "tokens" else rng.integers(0, 2, shape[:1])
            )
    batches = [batch for batch in batches if not labels or "labels" in batch]
    parity.check_trace(plm.load(tmp_path), batches, fields)


def test_trace_of_double_heads(tmp_path):
    rng = np.random.default_rng(17)
    parity.reference("GPT2DoubleHeadsModel", CONFIGS["odd"], tmp_path)
    batches = []
    for b, k, t in ((3, 2, 5), (1, 4, 7)):
        batch = {n: v.reshape(b, k, t) for n, v in inputs(rng, CONFIGS["odd"], "left", (b * k, t)).items()}
        batches.append(dict(batch, mc_token_ids=rng.integers(0, t, (b, k)), mc_labels=rng.integers(0, k, b)))
    parity.check_trace(plm.load(tmp_path), batches, ["logits", "mc_logits", "mc_loss"])
