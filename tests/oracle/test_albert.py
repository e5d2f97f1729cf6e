"""ALBERT against transformers, every head, groups of layers, and the modes of sharing."""

import numpy as np
import plmcore as plm
import pytest
from oracle import parity  # skips where torch and transformers are not installed
from plmcore.models.albert import AlbertConfig

torch = parity.torch
pytestmark = pytest.mark.oracle

SMALL = dict(classifier_dropout_prob=0.0)
CONFIGS = {
    "odd": dict(
        vocab_size=53,
        embedding_size=7,
        hidden_size=15,
        num_hidden_layers=3,
        num_attention_heads=3,
        intermediate_size=22,
        max_position_embeddings=13,
        type_vocab_size=3,
        **SMALL,
    ),
    "groups": dict(
        vocab_size=40,
        embedding_size=24,
        hidden_size=16,
        num_hidden_layers=5,
        num_hidden_groups=2,
        num_attention_heads=1,
        intermediate_size=9,
        max_position_embeddings=40,
        hidden_act="gelu",
        layer_norm_eps=1e-5,
        **SMALL,
    ),
    "inner": dict(
        vocab_size=70,
        embedding_size=5,
        hidden_size=20,
        num_hidden_layers=4,
        num_hidden_groups=2,
        inner_group_num=2,
        num_attention_heads=5,
        intermediate_size=30,
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


def num_labels(config):
    return config.get("num_labels", 2)


HEADS = {
    "AlbertModel": lambda rng, config, batch: [],
    "AlbertForMaskedLM": per_token(lambda config: config["vocab_size"]),
    "AlbertForPreTraining": lambda rng, config, batch: [
        dict(x, sentence_order_label=rng.integers(0, 2, B))
        for x in per_token(lambda c: c["vocab_size"])(rng, config, batch)
    ],
    "AlbertForSequenceClassification": lambda rng, config, batch: [
        dict(labels=rng.integers(0, num_labels(config), B))
    ],
    "AlbertForTokenClassification": per_token(num_labels),
    "AlbertForQuestionAnswering": lambda rng, config, batch: [
        dict(start_positions=rng.integers(0, T + 3, B), end_positions=rng.integers(-1, T, B))
    ],
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("size", CONFIGS)
def test_heads(size, name, tmp_path):
    config = CONFIGS[size]
    if name in ("AlbertForQuestionAnswering", "AlbertForPreTraining"):
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
    parity.check("AlbertForMultipleChoice", CONFIGS["odd"], batches, tmp_path)


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
    parity.check("AlbertForSequenceClassification", config, [batch], tmp_path)


def test_groups_that_do_not_divide_the_layers(tmp_path):
    """18 layers in 14 groups: where the reference rounds matters."""
    rng = np.random.default_rng(12)
    config = {**CONFIGS["odd"], "num_hidden_layers": 18, "num_hidden_groups": 14, "hidden_size": 6}
    parity.check("AlbertModel", config, [inputs(rng, config, "right")], tmp_path)


@pytest.mark.parametrize("inner", [1, 2])
@pytest.mark.parametrize("mode", ["all", "attention", "ffn", "none"])
def test_sharing(mode, inner, tmp_path):
    """transformers reads what a shared model saves, as a model that shares nothing: equal outputs, and what
    is shared here has the sum of the gradients there.
    """
    rng = np.random.default_rng(13)
    settings = {**CONFIGS["odd"], "inner_group_num": inner}
    config = AlbertConfig.from_dict(settings).sharing(mode)
    batch = dict(inputs(rng, settings, "right"), labels=parity.labels(rng, 53, (B, T)))

    lm = plm.from_config(config, "masked-lm", dtype="float64").eval()
    for p in lm.parameters():
        p.numpy()[...] += 0.3 * rng.standard_normal(p.shape)
    lm.save(tmp_path)
    model, again = parity.load_reference("AlbertForMaskedLM", tmp_path), plm.load(tmp_path)
    assert again.config.groups_share == config.groups_share
    assert again.model.num_parameters() == lm.model.num_parameters()
    with torch.no_grad(), plm.no_grad():
        expected = parity.theirs(model, batch, **parity.EXTRAS)
        for one in (lm, again):
            parity.same_output(one(**batch, **parity.EXTRAS), expected, batch, 1e-9)

    lm(**batch).loss.backward()
    parity.theirs(model, batch).loss.backward()
    theirs = {name: p.grad.numpy() for name, p in model.named_parameters()}
    copies = {"attention": ("attention",), "ffn": ("ffn", "full_layer"), "none": (), "all": ()}[mode]
    summed = 0
    for name, ours in parity.gradients(lm).items():
        expected = theirs[name]
        start, groups, rest = name.partition("albert_layer_groups.")
        if groups and rest.split(".", 3)[3].startswith(copies):
            rest = rest.partition(".")[2]
            expected = sum(theirs[f"{start}{groups}{g}.{rest}"] for g in range(config.num_hidden_groups))
            summed += 1
        parity.near(name, ours.numpy(), expected, 1e-9)
    assert summed == {"attention": 10, "ffn": 6}.get(mode, 0) * 3 * inner


@pytest.mark.parametrize("tie", [True, False])
def test_untied_when_the_file_holds_two_tables(tie, tmp_path):
    rng = np.random.default_rng(10)
    model = parity.reference(
        "AlbertForMaskedLM", {**CONFIGS["odd"], "tie_word_embeddings": False}, tmp_path / "a"
    )
    batch = inputs(rng, CONFIGS["odd"], "right")
    lm = plm.load(tmp_path / "a", tie_word_embeddings=tie)  # what the file holds decides
    lm.save(tmp_path / "b")
    back = parity.load_reference("AlbertForMaskedLM", tmp_path / "b")
    with torch.no_grad(), plm.no_grad():
        for one in (model, back):
            parity.same_output(lm(**batch), parity.theirs(one, batch), batch, 1e-5)


@pytest.mark.parametrize(
    "name, fields",
    [("AlbertModel", ["last_hidden_state", "pooler_output"]), ("AlbertForMaskedLM", ["logits", "loss"])],
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
