import json

import plmcore as plm
import pytest
from plmcore import models
from plmcore.models.bert import BertConfig


def test_unknown_keys_are_kept():
    written = dict(
        model_type="bert",
        hidden_size=24,
        num_attention_heads=2,
        novelty={"a": [1, None]},
        transformers_version="9",
    )
    config = models.config_from_dict(written)
    assert isinstance(config, BertConfig) and config.hidden_size == 24 and config.num_hidden_layers == 12
    again = json.loads(json.dumps(config.to_dict()))
    assert {key: again[key] for key in written} == written
    assert models.config_from_dict(again) == config


def test_labels():
    config = BertConfig.from_dict(
        {"id2label": {"0": "bad", "1": "fair", "2": "good"}, "label2id": {"bad": 0, "fair": 1, "good": 2}}
    )
    assert config.num_labels == 3 and config.to_dict()["id2label"] == {"0": "bad", "1": "fair", "2": "good"}
    changed = BertConfig.from_dict(config.to_dict(), num_labels=4)
    assert changed.num_labels == 4 and list(changed.to_dict()["label2id"].values()) == [0, 1, 2, 3]
    assert "id2label" not in BertConfig().to_dict()


def test_old_name_of_the_dtype():
    config = BertConfig.from_dict({"torch_dtype": "float16"})
    assert (
        config.dtype == "float16"
        and config.to_dict()["dtype"] == "float16"
        and "torch_dtype" not in config.to_dict()
    )


def test_frozen_and_replaced():
    config = BertConfig()
    with pytest.raises(AttributeError):
        config.hidden_size = 3
    assert config.replace(vocab_size=9).vocab_size == 9 and config.vocab_size == 30522
    with pytest.raises(ValueError, match="vocab_size must be at least 1, got 0"):
        config.replace(vocab_size=0)


@pytest.mark.parametrize("model_type, key", [("bert", "layer_norm_eps"), ("gpt2", "layer_norm_epsilon")])
def test_the_epsilon_of_a_norm_is_not_negative(model_type, key):
    with pytest.raises(ValueError, match=f"{key} must be at least 0, got -1e-05"):
        models.config_from_dict({"model_type": model_type, key: -1e-5})


def test_changes_must_be_known():
    assert BertConfig.from_dict({"novelty": 1}, novelty=2, vocab_size=7).extra["novelty"] == 2
    with pytest.raises(ValueError, match="BertConfig has no key 'num_lables'; one of "):
        BertConfig.from_dict({}, num_lables=3)


@pytest.mark.parametrize(
    "values, message",
    [
        ({}, "config.json must have a model_type, one of albert, .*got None"),
        ({"model_type": 3}, "must have a model_type.*got 3"),
        ({"model_type": "llama"}, "there is no model_type 'llama'; one of albert"),
    ],
)
def test_which_family(values, message):
    with pytest.raises(ValueError, match=message):
        models.config_from_dict(values)


def test_which_head():
    config = BertConfig(architectures=("BertForQuestionAnswering",))
    assert models.head_of(config) == "question-answering" and models.head_of(BertConfig()) == "base"
    with pytest.raises(
        ValueError, match="the architecture 'BertForFun' is not one of BertModel, .*head= one of base, "
    ):
        models.head_of(BertConfig(architectures=("BertForFun",)))
    with pytest.raises(ValueError, match="bert has no head 'seq2seq-lm'; one of base, "):
        models.build(BertConfig(), "seq2seq-lm")


def test_labels_are_an_object():
    for key in ("id2label", "label2id"):
        with pytest.raises(plm.ArgumentError, match=f"{key} must be an object, got 5"):
            plm.models.config_from_dict({"model_type": "bert", key: 5})
        assert plm.models.config_from_dict({"model_type": "bert", key: None}).to_dict()
