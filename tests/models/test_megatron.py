import numpy as np
import plmcore as plm
import pytest
from plmcore import FormatError, Tensor
from plmcore.models import glm, megatron, names

CFG = glm.GLMConfig(vocab_size=17, hidden_size=8, num_layers=2, num_attention_heads=2, max_sequence_length=6)


def state(prefix="", **changes):
    found = names.published(glm, glm.GLM(CFG))
    return {prefix + name: changes.get(name, t) for name, t in found.items()}


@pytest.mark.parametrize("prefix", ["", "module.", "module.model."])
def test_the_config_is_that_of_the_tensors(prefix):
    keys, tensors = megatron.read(state(prefix), {"num_attention_heads": 2}, {})
    assert plm.models.config_from_dict({"model_type": "glm", **keys}) == CFG
    assert set(tensors) == set(state())


def test_the_heads_have_to_be_given():
    keys, _ = megatron.read(state(), {}, {})
    with pytest.raises(plm.ArgumentError, match="num_attention_heads must be a whole number"):
        plm.models.config_from_dict({"model_type": "glm", **keys})
    assert plm.models.config_from_dict({"model_type": "glm", **keys}, num_attention_heads=2) == CFG


def test_another_width_of_the_mlp():
    changes = {"transformer.layers.0.mlp.dense_h_to_4h.weight": Tensor(np.zeros((5, 8), np.float32))}
    assert megatron.read(state(**changes), {}, {})[0]["intermediate_size"] == 5


def test_a_rank_of_several():
    part = Tensor(np.zeros((12, 8), np.float32))
    with pytest.raises(FormatError, match="one of several ranks: its query_key_value has 12 rows.*24"):
        megatron.read(state(**{"transformer.layers.0.attention.query_key_value.weight": part}), {}, {})


@pytest.mark.parametrize("name", [megatron.TOKENS, megatron.BLOCKS])
def test_another_model(name):
    left = {key: t for key, t in state().items() if key != name}
    with pytest.raises(FormatError, match=f"it has no matrix {name}: it is no checkpoint of GLM"):
        megatron.read(left, {}, {})
