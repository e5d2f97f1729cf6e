import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, models
from plmcore.models import names
from plmcore.models.glm import HEADS, GLMCausalLM, GLMConfig
from plmcore.models.gpt2 import GPT2CausalLM, GPT2Config

CFG = GLMConfig(
    vocab_size=31,
    hidden_size=12,
    num_layers=2,
    num_attention_heads=3,
    max_sequence_length=10,
    embedding_dropout_prob=0.0,
    attention_dropout_prob=0.0,
    output_dropout_prob=0.0,
    initializer_range=0.4,
)
rng = np.random.default_rng(0)
T, SOURCE = 9, 5
IDS = rng.integers(1, 31, (1, T))
PLACES = np.array([[0, 1, 2, 3, 4, 2, 2, 3, 3]])
BLOCKS = np.array([[0, 0, 0, 0, 0, 1, 2, 1, 2]])
GIVEN = dict(position_ids=PLACES, block_position_ids=BLOCKS, source_lengths=np.array([SOURCE]))


def made(head="causal-lm", config=CFG):
    plm.seed(4)
    return plm.LanguageModel(models.build(config, head).eval())


def logits(lm, ids=IDS, **changes):
    return lm(ids, **{**GIVEN, **changes}).logits.numpy()


@pytest.mark.parametrize(
    "size, count",
    [
        (dict(num_layers=12, hidden_size=768, num_attention_heads=12), 109_338_624),
        (dict(), 334_688_256),
        (
            dict(
                vocab_size=50304,
                num_layers=48,
                hidden_size=4096,
                num_attention_heads=64,
                max_sequence_length=1024,
            ),
            9_880_682_496,
        ),
    ],
)
def test_published_counts(size, count):
    assert models.count_parameters(GLMConfig(**size), "causal-lm") == count


@pytest.mark.parametrize("head", HEADS)
def test_every_head_has_names_and_its_count(head):
    model = models.build(CFG, head)
    written = names.published(models.glm, model)
    assert sum(t.size for t in written.values()) == model.num_parameters()
    assert models.head_of(CFG.replace(architectures=(models.architecture_of(CFG, head),))) == head


def test_initialisation():
    body = models.build(GLMConfig(num_layers=2, hidden_size=256, num_attention_heads=4, vocab_size=300))
    block = body.blocks[0]
    for tensor in (body.embeddings.tokens.weight, body.embeddings.blocks.weight, block.attn.qkv.weight):
        assert tensor.numpy().std() == pytest.approx(0.02, rel=0.03)
    for tensor in (block.attn.out.weight, block.mlp.down.weight):
        assert tensor.numpy().std() == pytest.approx(0.02 / 2, rel=0.03)


# ---- who sees whom ----


def test_the_text_does_not_see_the_pieces():
    lm = made()
    before = logits(lm)[:, :SOURCE]
    changed = IDS.copy()
    changed[:, SOURCE:] = (changed[:, SOURCE:] + 7) % 31
    assert logits(lm, changed)[:, :SOURCE].tobytes() == before.tobytes()
    moved = dict(position_ids=np.where(BLOCKS > 0, 1, PLACES), block_position_ids=np.where(BLOCKS > 0, 5, 0))
    assert logits(lm, **moved)[:, :SOURCE].tobytes() == before.tobytes()


def test_no_gradient_flows_from_the_text_to_the_pieces():
    lm = made()
    ids = np.concatenate([np.arange(1, SOURCE + 1), np.arange(20, 20 + T - SOURCE)])[None]
    body = lm.model.body
    encoded = body.encode(**body.tensors({"input_ids": ids, **GIVEN}))
    plm.ops.sum(plm.ops.slice(encoded.rows, 1, 0, SOURCE)).backward()
    assert not np.any(dense(body.embeddings.tokens.weight)[20:])
    assert np.any(dense(body.embeddings.tokens.weight)[1 : SOURCE + 1])


def dense(parameter):
    grad = parameter.grad
    if not grad.is_row_sparse:
        return grad.numpy()
    whole = np.zeros(parameter.shape, np.float32)
    np.add.at(whole, grad.rows.numpy(), grad.values.numpy())
    return whole


@pytest.mark.parametrize("at", range(SOURCE, T))
def test_pieces_are_causal_and_see_all_of_the_text(at):
    lm = made()
    before = logits(lm)
    changed = IDS.copy()
    changed[0, at] = (changed[0, at] + 7) % 31
    after = logits(lm, changed)
    assert after[:, :at].tobytes() == before[:, :at].tobytes()
    assert np.any(after[:, at:] != before[:, at:], axis=2).all()
    changed = IDS.copy()
    changed[0, SOURCE - 1] = (changed[0, SOURCE - 1] + 7) % 31
    assert np.any(logits(lm, changed) != before, axis=2).all()


def test_a_source_of_the_whole_row_is_an_encoder():
    lm = made()
    found = logits(lm, source_lengths=np.array([T]))
    for block in lm.model.body.blocks:
        block.attn.causal = False
    np.testing.assert_allclose(logits(lm, source_lengths=None), found, atol=2e-6)


def test_no_source_is_gpt2():
    """Whose positions have what the first row of the other table adds."""
    lm = made()
    cfg = GPT2Config(vocab_size=31, n_embd=12, n_layer=2, n_head=3, n_positions=11)
    other = plm.LanguageModel(GPT2CausalLM(cfg).eval())
    ours, theirs = lm.model.body, other.model.body
    values = dict(ours.named_parameters())
    for name, p in theirs.named_parameters():
        value = values[name].numpy()
        if name == "embeddings.positions.weight":
            value = value + values["embeddings.blocks.weight"].numpy()[0]
        plm._core.assign(p, Tensor(value))
    found = other(IDS).logits.numpy()
    np.testing.assert_allclose(lm(IDS, source_lengths=[0]).logits.numpy(), found, atol=5e-6)
    np.testing.assert_allclose(lm(IDS).logits.numpy(), found, atol=5e-6)


@pytest.mark.parametrize("side", ["right", "left", "both", "inside"])
@pytest.mark.parametrize("labelled", [False, True])
def test_padding_changes_nothing(side, labelled):
    """Wherever it is: source_lengths counts columns."""
    lm = made()
    alone = logits(lm)
    keep = {
        "right": list(range(T)) + [None] * 3,
        "left": [None] * 3 + list(range(T)),
        "both": [None] + list(range(T)) + [None],
        "inside": [*range(3), None, *range(3, 7), None, *range(7, T)],
    }[side]
    at = [i for i, k in enumerate(keep) if k is not None]

    def spread(row, fill):
        whole = np.full(len(keep), fill)
        whole[at] = row
        return np.stack([whole, np.resize(row, len(keep))])  # the second row has no padding

    mask = np.ones((2, len(keep)), np.int64)
    mask[0] = [k is not None for k in keep]
    batch = dict(
        input_ids=spread(IDS[0], 9),
        position_ids=spread(PLACES[0], 0),
        block_position_ids=spread(BLOCKS[0], 0),
        source_lengths=np.array([at[SOURCE - 1] + 1, SOURCE]),
        attention_mask=mask,
    )
    if labelled:
        labels = np.full(mask.shape, -100)
        labels[0, at[SOURCE:]] = 7
        whole = np.full((1, T), -100)
        whole[0, SOURCE:] = 7
        found = lm(**batch, labels=labels).loss.item()
        assert found == pytest.approx(lm(IDS, **GIVEN, labels=whole).loss.item(), rel=1e-6)
        return
    for options in ({}, {"output_attentions": True}):  # without its rows, and with them
        out = lm(**batch, **options).logits.numpy()[0]
        np.testing.assert_allclose(out[at], alone[0], atol=3e-6)


def test_any_inputs_trace():
    lm = made()
    names_of = ("input_ids", "position_ids", "block_position_ids", "attention_mask")
    specs = {name: plm.spec("int64", "B", "T") for name in names_of}
    program = plm.trace(lm.model, **specs, source_lengths=plm.spec("int64", "B"))
    batch = dict(GIVEN, input_ids=IDS, attention_mask=np.ones_like(IDS))
    twice = {k: np.concatenate([v, v]) for k, v in batch.items()}
    twice["attention_mask"][0, -1] = 0
    np.testing.assert_allclose(program(**twice)["logits"].numpy(), lm(**twice).logits.numpy(), atol=3e-6)


# ---- what does not fit ----


@pytest.mark.parametrize(
    "changes, words",
    [
        (
            dict(position_ids=PLACES + 8),
            "position_ids must be from 0 to 10, the last row of the table, got 12",
        ),
        (dict(block_position_ids=BLOCKS + 9), "block_position_ids must be from 0 to 10, .* got 11"),
        (dict(block_position_ids=BLOCKS - 1), "block_position_ids must be from 0 to 10, .* got -1"),
        (dict(source_lengths=[10]), "source_lengths must be from 0 to 9, the length of the rows, got 10"),
        (dict(source_lengths=[-1]), "source_lengths must be from 0 to 9, the length of the rows, got -1"),
    ],
)
def test_positions_and_lengths_beyond(changes, words):
    with pytest.raises(plm.IndexRangeError, match=words):
        logits(made(), **changes)


def test_shapes_that_do_not_fit():
    with pytest.raises(plm.ShapeError, match=r"source_lengths must be \[1\] like the batch, got \[2\]"):
        logits(made(), source_lengths=[1, 2])
    with pytest.raises(plm.ShapeError, match=r"position_ids must be \[1, 9\] like input_ids, got \[1, 8\]"):
        logits(made(), position_ids=PLACES[:, 1:])


def test_glm_4_is_told_apart():
    later = dict(model_type="glm", hidden_size=4096, num_hidden_layers=40, num_key_value_heads=2)
    with pytest.raises(plm.ArgumentError, match="block_position_encoding.*GLM-4"):
        models.config_from_dict(later)
    with pytest.raises(plm.ArgumentError, match="block_position_encoding must be"):
        models.config_from_dict(dict(model_type="glm", block_position_encoding=False))
    assert isinstance(models.build(CFG, "causal-lm"), GLMCausalLM)
