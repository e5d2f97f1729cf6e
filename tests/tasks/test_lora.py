import json

import numpy as np
import plmcore as plm
import pytest
from plmcore._core import assign
from plmcore.tasks import lora

IDS = np.arange(5, 17).reshape(2, 6)
FAMILIES = ["bert", "albert", "roberta", "gpt2", "openai-gpt"]
pytestmark = pytest.mark.filterwarnings("ignore:.*drawn at random")


def load(directory, family):
    folder = directory(family)
    plm.seed(2)
    pad = {"pad_token_id": 0} if "gpt" in family else {}
    return plm.load(folder, head="sequence-classification", num_labels=3, **pad).model


def logits(model):
    return model.eval()(plm.Tensor(IDS)).logits.numpy()


def trained(model):
    """Updates that are not 0, as after training."""
    draw = np.random.RandomState(0)
    for layer in model.modules():
        if isinstance(layer, lora.LoraLinear):
            assign(layer.lora_b, draw.randn(*layer.lora_b.shape).astype(np.float32) * 0.3)
    return model


@pytest.mark.parametrize("family", FAMILIES)
def test_an_update_begins_at_zero_and_merges(directory, family):
    model = load(directory, family)
    before = logits(model)
    lora.attach(model, 2, 8.0, ["attn.qkv", "mlp.up", "mlp.down"])
    np.testing.assert_array_equal(logits(model), before)
    assert {
        n.rpartition(".")[2] for n, p in model.named_parameters() if p.requires_grad and n.startswith("body.")
    } == {
        "lora_a",
        "lora_b",
    }
    moved = logits(trained(model))
    assert np.abs(moved - before).max() > 1e-3
    lora.merge(model)
    np.testing.assert_allclose(logits(model), moved, atol=1e-5)
    assert not any("lora" in name for name, _ in model.named_parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_an_adapter_goes_to_another_copy(directory, tmp_path, family):
    model = load(directory, family)
    lora.attach(model, 3, 6.0, ["attn.qkv", "attn.out"])
    expected = logits(trained(model))
    lora.save(model, tmp_path, "base")
    other = load(directory, family)
    lora.load(other, tmp_path)
    np.testing.assert_allclose(logits(other), expected, atol=1e-5)


def test_parts_that_an_adapter_lacks_stay(directory, tmp_path):
    """PEFT's usual choice for BERT: queries and values."""
    model = load(directory, "bert")
    draw = np.random.RandomState(1)
    tensors, expected = {}, np.array(model.body.blocks[1].attn.qkv.weight.numpy())
    for part, rows in (("query", slice(0, 32)), ("value", slice(64, 96))):
        a, b = draw.randn(4, 32).astype(np.float32), draw.randn(32, 4).astype(np.float32)
        key = f"base_model.model.bert.encoder.layer.1.attention.self.{part}"
        tensors |= {f"{key}.lora_A.weight": a, f"{key}.lora_B.weight": b}
        expected[rows] += 16 / 4 * b @ a
    tensors["base_model.model.classifier.bias"] = np.array([1.0, 2.0, 3.0], np.float32)
    plm.safetensors.write(tmp_path / "adapter_model.safetensors", tensors)
    (tmp_path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 4, "lora_alpha": 16}))
    lora.load(model, tmp_path)
    np.testing.assert_allclose(model.body.blocks[1].attn.qkv.weight.numpy(), expected, rtol=1e-5, atol=1e-5)
    assert model.classifier.bias.numpy().tolist() == [1.0, 2.0, 3.0]


def test_adapters_of_other_models(directory, tmp_path):
    model = load(directory, "bert")
    lora.attach(model, 2, 4.0, ["attn.qkv"])
    lora.save(trained(model), tmp_path, "base")
    other = load(directory, "roberta")
    before = logits(other)
    with pytest.raises(plm.FormatError, match="is of another model: it has no place for"):
        lora.load(other, tmp_path)
    np.testing.assert_array_equal(logits(other), before)
    with pytest.raises(ValueError, match="no layer is called attn.q; there are attn.out, attn.qkv"):
        lora.attach(other, 2, 4.0, ["attn.q"])
    with pytest.raises(ValueError, match="has no LoRA layers"):
        lora.save(other, tmp_path, "base")
    with pytest.raises(FileNotFoundError):
        lora.load(other, tmp_path / "nowhere")
