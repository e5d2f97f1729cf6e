"""Quantised directories that are opened in other ways, or are broken."""

import json

import ml_dtypes
import numpy as np
import plmcore as plm
import pytest
from plmcore import nn, safetensors
from plmcore.models import names, quantized
from small_models import GPT2, MASKED, SEQ2SEQ, sharp

IDS = np.array([[5, 9, 2, 14, 3]])


@pytest.fixture
def folder(tmp_path):
    sharp(MASKED["bert"], "pretraining").save(tmp_path / "model")
    return plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small")


def edit(folder, change):
    tensors = {n: t.numpy().copy() for n, t in safetensors.read(folder)[0].items()}
    change(tensors)
    safetensors.write(folder, tensors)


def test_another_head_takes_the_body(folder):
    small = plm.load(folder)
    base = plm.load(folder, head="base")
    assert base.report.problems() == "" and isinstance(base.model.pooler, nn.QuantizedLinear)
    assert (
        "predictions.dense.scale" in base.report.unused and "predictions.dense.weight" in base.report.unused
    )
    states = small(input_ids=IDS, output_hidden_states=True).hidden_states[-1].numpy()
    assert np.array_equal(base(input_ids=IDS).last_hidden_state.numpy(), states)
    with pytest.warns(
        UserWarning, match="has no weights for classifier.weight, classifier.bias: they are drawn"
    ):
        lm = plm.load(folder, head="sequence-classification", num_labels=5)
    assert type(lm.model.classifier) is nn.Linear and lm(input_ids=IDS).logits.shape == (1, 5)
    assert not lm.model.classifier.weight.requires_grad


def test_a_body_gets_a_head(tmp_path):
    sharp(GPT2, "base").save(tmp_path / "model")
    plm.quantize(tmp_path / "model", "int8", out=tmp_path / "small")
    lm = plm.load(tmp_path / "small", head="causal-lm")  # tied: nothing is fresh
    assert lm.model.lm_head.weight is lm.model.body.embeddings.tokens.weight and lm.report.problems() == ""
    assert lm(input_ids=IDS).logits.shape == (1, 5, 40)


def no_scale(tensors):
    del tensors["body.blocks.1.mlp.up.scale"]


def short_scale(tensors):
    tensors["body.blocks.1.mlp.up.scale"] = tensors["body.blocks.1.mlp.up.scale"][:-1].copy()


def wide_scale(tensors):
    tensors["body.blocks.1.mlp.up.scale"] = tensors["body.blocks.1.mlp.up.scale"].astype(np.float64)


def nan_scale(tensors):
    tensors["body.blocks.1.mlp.up.scale"][2] = np.nan


def negative_scale(tensors):
    tensors["body.blocks.1.mlp.up.scale"][2] *= -1


def no_weight(tensors):
    del tensors["body.blocks.1.mlp.up.weight"]


def misshaped(tensors):
    tensors["body.blocks.1.mlp.up.weight"] = tensors["body.blocks.1.mlp.up.weight"][:, :-1].copy()


def int8_positions(tensors):
    tensors["body.embeddings.positions.weight"] = np.zeros((16, 12), np.int8)


def unexpected(tensors):
    tensors["body.blocks.9.mlp.up.weight"] = np.zeros((2, 2), np.float32)


@pytest.mark.parametrize(
    "change, message",
    [
        (no_scale, "'body.blocks.1.mlp.up.weight' is int8 and 'body.blocks.1.mlp.up.scale' is missing"),
        (
            short_scale,
            r"up.scale' must be float32, one for each row of 'body.blocks.1.mlp.up.weight' \[16, 12\], "
            r"got float32 \[15\]",
        ),
        (wide_scale, r"got float64 \[16\]"),
        (nan_scale, "'body.blocks.1.mlp.up.scale' must be finite and not negative"),
        (negative_scale, "must be finite and not negative"),
        (no_weight, "missing: body.blocks.1.mlp.up.weight; unexpected: body.blocks.1.mlp.up.scale"),
        (misshaped, r"wrong shape: body.blocks.1.mlp.up.weight \[16, 11\], expected \[16, 12\]"),
        (
            int8_positions,
            "'body.embeddings.positions.weight' is int8 and 'body.embeddings.positions.scale' is missing",
        ),
        (unexpected, "unexpected: body.blocks.9.mlp.up.weight"),
    ],
)
def test_broken_tensors(folder, change, message):
    edit(folder, change)
    with pytest.raises(plm.FormatError, match=message):
        plm.load(folder)


@pytest.mark.filterwarnings("ignore:.*drawn at random")
def test_what_fits_is_loaded_without_strict(folder):
    edit(folder, misshaped)
    lm = plm.load(folder, strict=False)
    up = lm.model.body.blocks[1].mlp.up
    assert type(up) is nn.Linear and up.weight.shape == (16, 12) and len(lm.report.misshaped) == 1
    assert lm(input_ids=IDS).prediction_logits.shape == (1, 5, 40)


def test_tensors_that_no_layer_multiplies_with(tmp_path):
    sharp(dict(model_type="xlnet", d_model=16, n_layer=1, n_head=2, d_inner=24), "causal-lm").save(
        tmp_path / "model"
    )
    for weights in ("int8", "bfloat16"):
        plm.quantize(tmp_path / "model", weights, out=tmp_path / weights)

    def whole(tensors):
        tensors["body.blocks.0.attn.u"] = np.zeros((2, 8), np.int8)
        tensors["body.blocks.0.attn.uscale"] = np.zeros(2, np.float32)

    edit(tmp_path / "int8", whole)
    with pytest.raises(
        plm.FormatError, match="'body.blocks.0.attn.u' must not be int8: it is not the weight of a"
    ):
        plm.load(tmp_path / "int8")

    def half(tensors):
        tensors["body.blocks.0.attn.u"] = tensors["body.blocks.0.attn.u"].astype(ml_dtypes.bfloat16)

    edit(tmp_path / "bfloat16", half)
    assert plm.load(tmp_path / "bfloat16").model.body.blocks[0].attn.u.dtype == "float32"


def test_configs(folder):
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"]["weights"] = "int3"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(
        plm.FormatError, match="the weights of quantization_config must be one of int8, bfloat16, got 'int3'"
    ):
        plm.load(folder)
    other = plm.models.config_from_dict({**config, "quantization_config": {"quant_method": "gptq"}})
    assert quantized.weights_of(other) is None and quantized.with_weights(other, None) == other


def test_fresh_weights_of_a_quantised_config_are_ordinary(folder, tmp_path):
    plm.from_config(folder, "base").save(tmp_path / "fresh")
    assert "quantization_config" not in json.loads((tmp_path / "fresh" / "config.json").read_text())
    assert type(plm.load(tmp_path / "fresh").model.pooler) is nn.Linear


def test_which_parameters_are_quantised():
    def chosen(config, head):
        with nn.init.skipped():
            model = plm.models.build(plm.models.config_from_dict(dict(config, vocab_size=40)), head)
        groups = names.groups(names.OWN, model)
        kept = {
            s.name
            for g in groups
            for s in g
            if not quantized.quantizable(model, g) and len(s.parameter.shape) > 1
        }
        return kept, {s.name for g in groups for s in g if quantized.quantizable(model, g)}

    kept, small = chosen(MASKED["bert"], "masked-lm")
    assert kept == {"body.embeddings.positions.weight", "body.embeddings.types.weight"}
    assert {
        "body.embeddings.tokens.weight",
        "predictions.decoder.weight",
        "body.blocks.0.attn.qkv.weight",
    } <= small
    kept, small = chosen(SEQ2SEQ["t5"], "seq2seq-lm")
    assert (
        kept == {"body.encoder.bias.table.weight", "body.decoder.bias.table.weight"}
        and "lm_head.weight" in small
    )
    kept, _ = chosen(dict(model_type="xlnet", d_model=16, n_layer=1, n_head=2, d_inner=24), "causal-lm")
    assert all(not name.endswith("weight") for name in kept)
