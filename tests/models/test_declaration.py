"""What a family's module must declare, and what is said of one that does not."""

import types
from dataclasses import dataclass

import plmcore as plm
import pytest
from plmcore import models
from plmcore.models import bert
from plmcore.models.declaration import NEEDED, OPTIONAL, Finetuning, Recipe


@dataclass(frozen=True, kw_only=True)
class ToyConfig(bert.BertConfig):
    model_type: str = "toy"


GOOD = dict(
    CONFIG=ToyConfig,
    MODEL_TYPES={"toy": "Toy"},
    HEADS={"base": bert.Bert, "masked-lm": bert.BertMaskedLM},
    ARCHITECTURES={"ToyModel": "base", "ToyForMaskedLM": "masked-lm"},
    PREFIX="toy.",
    NAMES=bert.NAMES,
)


def module(**changes):
    made = types.ModuleType("my_toy")
    vars(made).update({k: v for k, v in (GOOD | changes).items() if v is not None})
    return made


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    monkeypatch.setattr(models, "FAMILIES", dict(models.FAMILIES))
    monkeypatch.setattr(models, "_MODULES", dict(models._MODULES))


def test_a_whole_one():
    models.register(module())
    models.register(module())  # the same again, as after a reload
    known = models.family("toy")
    assert known.FINETUNING == Finetuning() and known.RECIPES == {} and known.TOKENIZERS == ()
    assert models.config_class("toy") is ToyConfig
    assert models.config_from_dict({"model_type": "toy", "hidden_size": 24}).hidden_size == 24
    assert models.head_of(ToyConfig(architectures=("ToyForMaskedLM",))) == "masked-lm"


def test_every_family_is_whole():
    for known in models.families():
        assert all(hasattr(known, key) for key in (*NEEDED, *OPTIONAL))


@pytest.mark.parametrize("key", NEEDED)
def test_what_is_missing_is_named(key):
    said = rf"my_toy declares no family: add {key} \(.*adding-a-model.md"
    with pytest.raises(plm.ArgumentError, match=said):
        models.register(module(**{key: None}))
    assert "toy" not in models.FAMILIES


def test_an_empty_module():
    with pytest.raises(plm.ArgumentError, match=f"add {'.*'.join(NEEDED)}"):
        models.register(types.ModuleType("empty"))


RECIPE = dict(model=bert.sized, objective={}, tokenizer="words", vocab=9, lr=1.0, steps=1, warmup=0.0)
WRONG = {
    "CONFIG": [dict, bert.BertConfig, "ToyConfig"],
    "MODEL_TYPES": [{}, {"toy": 1}, "toy", {"toy": "Toy", "bert": "Bert"}],
    "HEADS": [{}, {"masked-lm": bert.BertMaskedLM}, {"base": 1}, [bert.Bert], 1],
    "ARCHITECTURES": [{}, {"ToyModel": "base"}, GOOD["ARCHITECTURES"] | {"ToyForX": "x"}, {"A": "base"}],
    "PREFIX": [1],
    "NAMES": [[], {1: "a"}],
    "CONFIGS": [{"toy": dict}, []],
    "TOKENIZERS": [["toy"], ("toy",), {}],
    "RECIPES": [{"toy": {}}, {"toy": Recipe(**RECIPE, head="x")}, {"other": Recipe(**RECIPE, head="base")}],
    "FINETUNING": [{}],
    "ALIASES": [{"t": "toy"}, [], {"t": 1}],
}  # fmt: skip


@pytest.mark.parametrize("key, value", [(key, value) for key, values in WRONG.items() for value in values])
def test_what_is_broken_is_named(key, value):
    with pytest.raises(plm.ArgumentError, match=r"my_toy\.[A-Z_]+ must be ") as e:
        models.register(module(**{key: value}))
    assert key in str(e.value) and "toy" not in models.FAMILIES


def test_another_familys_model_type():
    @dataclass(frozen=True, kw_only=True)
    class Mine(bert.BertConfig):
        model_type: str = "gpt2"

    with pytest.raises(plm.ArgumentError, match="my_toy.MODEL_TYPES must be of its own: 'gpt2' is of gpt2"):
        models.register(module(CONFIG=Mine, MODEL_TYPES={"gpt2": "Toy"}))
