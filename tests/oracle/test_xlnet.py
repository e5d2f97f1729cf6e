"""XLNet against transformers: every head, permutations, targets, memories, segments and padding."""

from unittest import mock

import numpy as np
import plmcore as plm
import pytest
from oracle import parity  # skips where torch and transformers are not installed

torch = parity.torch
pytestmark = pytest.mark.oracle

SMALL = dict(dropout=0.0, summary_last_dropout=0.0)
CONFIGS = {
    "odd": dict(vocab_size=53, d_model=12, n_layer=3, n_head=3, d_inner=22, mem_len=5, **SMALL),
    "clamped": dict(
        vocab_size=40,
        d_model=32,
        n_layer=2,
        n_head=1,
        d_inner=9,
        mem_len=None,
        reuse_len=4,
        clamp_len=3,
        ff_activation="gelu_new",
        layer_norm_eps=1e-5,
        summary_type="first",
        summary_activation="",
        **SMALL,
    ),
    "both ways": dict(
        vocab_size=70,
        d_model=20,
        n_layer=1,
        n_head=5,
        d_inner=64,
        mem_len=7,
        bi_data=True,
        ff_activation="relu",
        num_labels=4,
        tie_word_embeddings=False,
        summary_type="mean",
        summary_use_proj=False,
        **SMALL,
    ),
    "one way": dict(
        vocab_size=40,
        d_model=16,
        n_layer=2,
        n_head=2,
        d_inner=30,
        mem_len=0,
        attn_type="uni",
        use_mems_eval=False,
        summary_type="cls_index",
        **SMALL,
    ),
    "same length": dict(
        vocab_size=40,
        d_model=16,
        n_layer=2,
        n_head=4,
        d_inner=30,
        attn_type="uni",
        same_length=True,
        clamp_len=2,
        **SMALL,
    ),
}
B, T, P, M = 4, 7, 3, 3


@pytest.fixture(autouse=True)
def exact_sinusoids():
    """The reference makes its sinusoids in float32; here they follow the dtype of the model, so that float64
    shows formulas alone.
    """
    kind = parity.transformers.XLNetModel
    rounded = kind.relative_positional_encoding

    def exact(model, *args, **options):
        if model.dtype != torch.float64:
            return rounded(model, *args, **options)
        with mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
            return rounded(model, *args, **options).double()

    with mock.patch.object(kind, "relative_positional_encoding", exact):
        yield


def rows(config):
    """The reference cannot add a mask to that of attn_type uni for more than one sequence."""
    return 1 if config.get("attn_type") == "uni" else B


def inputs(rng, config, side=None, memory=0, shape=None):
    shape = shape or (rows(config), T)
    batch = dict(
        input_ids=rng.integers(0, config["vocab_size"], shape), token_type_ids=rng.integers(0, 3, shape)
    )
    if side:
        mask = parity.mask(rng, shape[0] + 3, shape[1], side)
        batch["attention_mask"] = mask[np.argsort(mask.sum(1))[: shape[0]]]  # not those that are whole
    if memory:
        size = (config["n_layer"], memory, shape[0], config["d_model"])
        batch["mems"] = rng.standard_normal(size).astype(np.float32)
    return batch


def order(rng, batch, targets=M):
    """A random order of factorisation: the tokens before the targets see one another, position 0 is among
    them.
    """
    n, length = batch["input_ids"].shape
    perm, mapping = np.zeros((n, length, length), np.float32), np.zeros((n, targets, length), np.float32)
    for b in range(n):
        rank = np.full(length, -1)
        chosen = 1 + rng.permutation(length - 1)[:targets]
        rank[chosen] = np.arange(targets)
        perm[b] = (rank >= 0) & (rank >= rank[:, None])
        mapping[b, np.arange(targets), chosen] = 1
    return dict(perm_mask=perm, target_mapping=mapping)


# ---- heads ----


def per_token(size):
    return lambda rng, config: dict(labels=parity.labels(rng, size(config), (rows(config), T)))


HEADS = {
    "XLNetModel": lambda rng, config: {},
    "XLNetLMHeadModel": per_token(lambda config: config["vocab_size"]),
    "XLNetForTokenClassification": per_token(lambda config: config.get("num_labels", 2)),
    "XLNetForSequenceClassification": lambda rng, config: dict(
        labels=rng.integers(0, config.get("num_labels", 2), rows(config))
    ),
    "XLNetForQuestionAnsweringSimple": lambda rng, config: dict(
        start_positions=rng.integers(0, T + 3 * (rows(config) > 1), rows(config)),
        end_positions=rng.integers(-1, T, rows(config)),
    ),
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("size", CONFIGS)
def test_heads(size, name, tmp_path):
    config = dict(CONFIGS[size])
    if name == "XLNetForQuestionAnsweringSimple":
        config["num_labels"] = 2
    rng = np.random.default_rng(1 + len(name) + len(size))
    batch = inputs(rng, config, None, P)
    batches = [
        dict(input_ids=parity.ids(rng, config, 2, 1)),
        {**batch, "perm_mask": order(rng, batch)["perm_mask"]},
    ]
    for side in (None, "right", "left", "holes"):
        batch = inputs(rng, config, side, P if side == "left" else 0)
        batches += [batch, {**batch, **HEADS[name](rng, config)}] if HEADS[name](rng, config) else [batch]
    parity.check(name, config, batches, tmp_path)


@pytest.mark.parametrize("side", [None, "right", "left", "holes"])
@pytest.mark.parametrize("size", ["odd", "clamped", "both ways"])
def test_answer_beams(size, side, tmp_path):
    rng = np.random.default_rng(4)
    config = {**CONFIGS[size], "start_n_top": 3, "end_n_top": 2}
    batch = inputs(rng, config, side, P if side == "left" else 0)
    hidden = np.zeros((B, T), np.float32)
    hidden[np.arange(B), rng.integers(0, T, B)] = 1
    answers = dict(start_positions=rng.integers(0, T, B), end_positions=rng.integers(0, T, B))
    cls = dict(cls_index=rng.integers(0, T, B), is_impossible=rng.integers(0, 2, B).astype(np.float32))
    batches = [
        batch,
        {**batch, "p_mask": hidden, "cls_index": cls["cls_index"]},
        {**batch, **answers},
        {**batch, **answers, **cls},
    ]
    parity.check("XLNetForQuestionAnswering", config, batches, tmp_path)


@pytest.mark.parametrize("side", [None, "right", "left"])
@pytest.mark.parametrize("size", ["odd", "both ways"])
def test_multiple_choice(size, side, tmp_path):
    rng = np.random.default_rng(7)
    batch = {k: v.reshape(B, 3, T) for k, v in inputs(rng, CONFIGS[size], side, 0, (B * 3, T)).items()}
    parity.check(
        "XLNetForMultipleChoice", CONFIGS[size], [batch, dict(batch, labels=rng.integers(0, 3, B))], tmp_path
    )


@pytest.mark.parametrize("problem", ["regression", "multi_label_classification"])
def test_other_losses_of_sequences(problem, tmp_path):
    rng = np.random.default_rng(9)
    n = 1 if problem == "regression" else 3
    batch = inputs(rng, CONFIGS["odd"], "left")
    batch["labels"] = rng.integers(0, 2, (B, n)).astype(np.float32)
    config = {**CONFIGS["odd"], "num_labels": n, "problem_type": problem}
    parity.check("XLNetForSequenceClassification", config, [batch], tmp_path)


# ---- two streams ----


@pytest.mark.parametrize("name", ["XLNetModel", "XLNetLMHeadModel", "XLNetForSequenceClassification"])
@pytest.mark.parametrize("size", CONFIGS)
def test_targets(size, name, tmp_path):
    rng = np.random.default_rng(len(name) + len(size))
    config = CONFIGS[size]
    memory = T + 1 if config.get("same_length") else 0  # else there is nothing to see
    found = [inputs(rng, config, None, memory), inputs(rng, config, None, memory or P)]
    del found[0]["token_type_ids"]
    batches = [dict(batch, **order(rng, batch)) for batch in found]
    if name == "XLNetLMHeadModel":
        batches += [
            dict(batch, labels=parity.labels(rng, config["vocab_size"], (rows(config), M), 0.7))
            for batch in batches[1:]
        ]
    parity.check(name, config, batches, tmp_path)


@pytest.mark.parametrize("side", ["right", "left", "holes"])
@pytest.mark.parametrize("size", ["odd", "both ways", "one way"])
def test_targets_with_padding(size, side, tmp_path):
    rng = np.random.default_rng(len(size))
    config = CONFIGS[size]
    batch = inputs(rng, config, side, P)
    batch |= order(rng, batch)  # with a memory every target sees something
    batches = [batch, dict(batch, labels=parity.labels(rng, config["vocab_size"], (rows(config), M), 0.7))]
    lm = parity.check("XLNetLMHeadModel", config, batches, tmp_path, extras={}, hidden_by={"logits": ""})
    model, seen = (
        parity.load_reference("XLNetLMHeadModel", tmp_path / "published"),
        batch["attention_mask"] == 1,
    )
    with torch.no_grad(), plm.no_grad():
        a, e = lm(**batch, **parity.EXTRAS), parity.theirs(model, batch, **parity.EXTRAS)
    for i, (x, y) in enumerate(
        zip(parity.arrays(a.hidden_states), parity.arrays(e.hidden_states), strict=True)
    ):
        parity.near(f"hidden_states {i}", x, np.where(seen[..., None], y, 0) if i % 2 == 0 else y, 1e-5)
    for x, y in zip(parity.arrays(a.attentions), parity.arrays(e.attentions), strict=True):
        parity.near("attentions", x, np.where(seen[:, None, :, None], y, 0), 1e-5)


def test_mappings_that_are_not_one_hot(tmp_path):
    """Two targets at one position add up, an empty one sees nothing of the text: as published."""
    rng = np.random.default_rng(3)
    batch = inputs(rng, CONFIGS["odd"])
    batch |= order(rng, batch)
    batch["target_mapping"][:, 1] = batch["target_mapping"][:, 0]
    batch["target_mapping"][1, 2] = 0
    parity.check("XLNetLMHeadModel", CONFIGS["odd"], [batch], tmp_path)


# ---- memories ----


@pytest.mark.parametrize("size", ["odd", "clamped", "both ways", "same length"])
@pytest.mark.parametrize("side", [None, "left"])
def test_a_text_in_segments(size, side, tmp_path):
    """The memory of one segment goes into the next: as given back, layer by layer."""
    rng = np.random.default_rng(4)
    model = parity.reference("XLNetLMHeadModel", CONFIGS[size], tmp_path)
    lm, ours, theirs = plm.load(tmp_path), {}, {}
    with torch.no_grad(), plm.no_grad():
        for _ in range(3):
            batch = inputs(rng, CONFIGS[size], side)
            a, e = lm(**batch, **ours), parity.theirs(model, batch, **theirs)
            parity.same_output(a, e, batch, 1e-5)
            ours, theirs = dict(mems=a.mems), dict(mems=e.mems)


def test_memories_while_training(tmp_path):
    rng = np.random.default_rng(5)
    config = {**CONFIGS["odd"], "use_mems_train": True}
    model = parity.reference("XLNetLMHeadModel", config, tmp_path).train()
    lm = plm.load(tmp_path).train()
    batch = dict(inputs(rng, config, "left", P), labels=parity.labels(rng, 53, (rows(config), T)))
    a, e = lm(**batch), parity.theirs(model, batch)
    parity.same_output(a, e, batch, 1e-5)
    assert len(a.mems) == 3 and not any(m.requires_grad for m in a.mems)
    a.loss.backward()
    e.loss.backward()
    parity.same_gradients(lm, model, 1e-4)
    assert (
        parity.theirs(model, batch, use_mems=False).mems is None and lm(**batch, use_mems=False).mems is None
    )


def test_long_texts(tmp_path):
    """Hundreds of positions, where the reference rounds angles in float32 and we do not: at least as near to
    float64 as it is.
    """
    rng = np.random.default_rng(6)
    config = dict(vocab_size=50, d_model=64, n_layer=2, n_head=4, d_inner=64, mem_len=200, **SMALL)
    model = parity.reference("XLNetModel", config, tmp_path)
    batch = inputs(rng, config, None, 200, (2, 300))
    with torch.no_grad(), plm.no_grad():
        ours, theirs = plm.load(tmp_path)(**batch), parity.theirs(model, batch)
        exact = parity.theirs(model.double(), parity.typed(batch, "float64")).last_hidden_state.numpy()
        again = plm.load(tmp_path, dtype="float64")(
            **parity.typed(batch, "float64")
        ).last_hidden_state.numpy()
    parity.near("float64", again, exact, 1e-9)
    a, e = (np.abs(x.last_hidden_state.numpy() - exact).max() for x in (ours, theirs))
    assert a <= 1.5 * e


# ---- programs ----


@pytest.mark.parametrize(
    "name, fields",
    [
        ("XLNetModel", ["last_hidden_state"]),
        ("XLNetLMHeadModel", ["logits", "loss"]),
        ("XLNetForSequenceClassification", ["logits"]),
    ],
)
@pytest.mark.parametrize("side", [None, "right", "left", "holes"])
def test_trace(name, fields, side, tmp_path):
    rng = np.random.default_rng(11)
    parity.reference(name, CONFIGS["odd"], tmp_path)
    batches = [inputs(rng, CONFIGS["odd"], side, 0, shape) for shape in ((3, 5), (2, 12), (7, 1))]
    if "loss" in fields:
        for batch in batches:
            batch["labels"] = parity.labels(rng, 53, batch["input_ids"].shape)
    parity.check_trace(plm.load(tmp_path), batches, fields)
