"""MASS: positions of fairseq, places of a fragment's tokens, names."""

import numpy as np
import plmcore as plm
import pytest
from plmcore import models
from plmcore.models import bart, mass, names
from plmcore.models.mass import MassConfig

SIZES = dict(
    vocab_size=31,
    d_model=12,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=3,
    decoder_attention_heads=2,
    encoder_ffn_dim=17,
    decoder_ffn_dim=9,
    max_position_embeddings=10,
    dropout=0.0,
    attention_dropout=0.0,
    activation_dropout=0.0,
    eos_token_id=2,
    decoder_start_token_id=2,
)
rng = np.random.default_rng(0)
IDS, TARGET = rng.integers(3, 31, (3, 7)), rng.integers(3, 31, (3, 5))
LENGTHS = np.array([7, 2, 4])
RIGHT = (np.arange(7) < LENGTHS[:, None]).astype(np.int64)


def model(pad=0, **changes):
    plm.seed(1)
    return plm.from_config(MassConfig(**SIZES | dict(pad_token_id=pad) | changes), "seq2seq-lm").eval()


def logits(lm, ids, mask=None, target=TARGET, **inputs):
    with plm.no_grad():
        return lm(input_ids=ids, attention_mask=mask, decoder_input_ids=target, **inputs).logits.numpy()


def test_published_count():
    """123 million, as the published table says."""
    assert models.count_parameters(MassConfig(), "seq2seq-lm") == 123_469_824


@pytest.mark.parametrize("scaled", [True, False])
def test_fresh_positions_are_as_large_as_the_tokens_that_they_are_added_to(scaled):
    """With smaller ones a model of scaled tokens hardly learns where they stand."""
    body = model(scale_embedding=scaled, d_model=60, vocab_size=500, max_position_embeddings=200).model.body
    for side in (body.encoder.embeddings, body.decoder.embeddings):
        tokens, positions = side.scale * side.tokens.weight.numpy(), side.positions.weight.numpy()
        assert abs(positions[1:].std() / tokens[1:].std() - 1) < 0.05
        assert not positions[0].any()  # of padding


@pytest.mark.parametrize("pad", [0, 1, 4])
def test_the_side_of_padding_makes_no_difference(pad):
    """Only tokens that are no padding count."""
    lm = model(pad)
    ids = np.where(IDS == pad, 7, IDS)
    right = np.where(RIGHT == 1, ids, pad)
    left, mask = np.full_like(right, pad), RIGHT[:, ::-1].copy()
    for row, found, n in zip(left, ids, LENGTHS):
        row[7 - n :] = found[:n]
    want = logits(lm, right, RIGHT)
    np.testing.assert_allclose(logits(lm, left, mask), want, atol=1e-5)
    for row, n in enumerate(LENGTHS):
        alone = logits(lm, ids[row : row + 1, :n], target=TARGET[row : row + 1])
        np.testing.assert_allclose(want[row : row + 1], alone, atol=1e-5)


@pytest.mark.parametrize("pad", [0, 3])
def test_places_of_the_decoder(pad):
    """0, 1, ... are what it counts itself; others differ; the first is row pad + 1 of the table."""
    lm = model(pad)
    target = np.where(TARGET == pad, 7, TARGET)
    counted = np.broadcast_to(np.arange(5), target.shape)
    want = logits(lm, IDS, target=target)
    assert np.array_equal(logits(lm, IDS, target=target, decoder_position_ids=counted), want)
    moved = logits(lm, IDS, target=target, decoder_position_ids=counted + 4)
    zeros = logits(lm, IDS, target=target, decoder_position_ids=0 * counted)
    assert np.abs(moved - want).max() > 1e-4 and np.abs(zeros - want).max() > 1e-4
    table = lm.model.body.decoder.embeddings.positions.weight
    assert table.shape == (pad + 11, 12) and not table.numpy()[pad].any()
    changed = table.numpy().copy()
    changed[pad + 1 : pad + 6] = changed[pad + 5 : pad + 10]
    plm._core.assign(table, plm.Tensor(changed))
    assert np.array_equal(logits(lm, IDS, target=target), moved)


def test_padding_of_the_target_has_no_part():
    lm = model()
    target = TARGET.copy()
    target[1, 3:] = 0
    assert np.array_equal(logits(lm, IDS, target=target)[1, :3], logits(lm, IDS, target=TARGET)[1, :3])


@pytest.mark.parametrize(
    "places, error, message",
    [
        (np.full((3, 5), 10), IndexError, "decoder_position_ids must be from 0 to 9, got 10 to 10"),
        (np.full((3, 5), -1), IndexError, "decoder_position_ids must be from 0 to 9, got -1 to -1"),
        (np.zeros((3, 4), int), ValueError, r"decoder_position_ids must be \[3, 5\] like decoder_input_ids"),
        (np.zeros((3, 5)), ValueError, "decoder_position_ids must be whole numbers"),
    ],
)
def test_places_that_are_none(places, error, message):
    with pytest.raises(error, match=message):
        logits(model(), IDS, decoder_position_ids=places)


def test_other_bad_input():
    with pytest.raises(ValueError, match="the length 11 is more than the 10 positions"):
        logits(model(), rng.integers(3, 31, (1, 11)), target=TARGET[:1])
    with pytest.raises(IndexError, match="out of range"):
        logits(model(), IDS + 31)
    with pytest.raises(ValueError, match="pad_token_id must be below vocab_size = 31"):
        MassConfig(**SIZES, pad_token_id=31)
    plm.seed(0)
    other = plm.from_config(bart.BartConfig(**SIZES), "seq2seq-lm")
    with pytest.raises(TypeError, match="decoder_position_ids"):
        other(input_ids=IDS, decoder_input_ids=TARGET, decoder_position_ids=TARGET * 0)


def test_names(tmp_path):
    lm = model()
    written = names.published(mass, lm.model)
    assert tuple(written["model.encoder.embed_positions.weight"].shape) == (11, 12)
    assert "model.decoder.emb_layer_norm.weight" in written and "lm_head.weight" not in written
    assert not [name for name in written if "layernorm_embedding" in name]
    lm.save(tmp_path)
    again = plm.load(tmp_path)
    assert again.config == lm.config.replace(architectures=("MassForConditionalGeneration",), dtype="float32")
    assert np.array_equal(logits(again, IDS), logits(lm, IDS))


def test_a_traced_program_takes_places():
    lm = model()
    ids = dict(input_ids=plm.spec("int64", "B", "S"), attention_mask=plm.spec("int64", "B", "S"))
    decoder = dict.fromkeys(("decoder_input_ids", "decoder_position_ids"), plm.spec("int64", "B", "T"))
    program = plm.trace(lm.model, **ids, **decoder)
    for places in (TARGET * 0, np.broadcast_to(np.arange(4, 9), TARGET.shape)):
        masked = np.where(RIGHT == 1, IDS, 0)
        inputs = dict(input_ids=masked, attention_mask=RIGHT, decoder_input_ids=TARGET)
        inputs["decoder_position_ids"] = np.ascontiguousarray(places)
        found = program(**{name: plm.Tensor(x) for name, x in inputs.items()})
        want = logits(lm, masked, RIGHT, decoder_position_ids=places)
        got = found["logits"] if isinstance(found, dict) else found.logits
        np.testing.assert_allclose(got.numpy(), want, atol=1e-5)
