"""The name tables, on a family of two layers made for this."""

import types

import numpy as np
import pytest
from plmcore import Tensor, nn
from plmcore.models import names
from plmcore.models.config import Config
from plmcore.models.names import Stored

rng = np.random.default_rng(0)


class Body(nn.Module):
    def __init__(self, config):
        self.config = config
        self.tokens = nn.Embedding(5, 4)
        self.blocks = nn.ModuleList(Block() for _ in range(2))


class Block(nn.Module):
    def __init__(self):
        self.qkv = nn.Linear(4, 12)
        self.up = nn.Linear(4, 6)
        self.cube = nn.Linear(4, 6, bias=False)
        self.norm = nn.LayerNorm(4)


class Head(nn.Module):
    def __init__(self, config):
        self.config = config
        self.body = Body(config)
        self.third = nn.Linear(4, 5, bias=False, weight=self.body.tokens.weight)
        self.out = nn.Linear(4, 5, weight=self.body.tokens.weight)


FAMILY = types.SimpleNamespace(
    __name__="family",
    PREFIX="old.",
    DROPPED=(r"mask$",),
    RENAMED=((r"^ancient\.", "old."),),
    NAMES={
        "tokens": "emb",
        "blocks.{i}.qkv": "h.{i}.{q,k,v}",
        "blocks.{i}.up": "h.{i}.up^T",
        "blocks.{i}.cube.weight": Stored(("h.{i}.cube",), True, lambda config: (4, 2, 3)),
        "blocks.{i}.norm": "h.{i}.LayerNorm",
        "third": "third",
        "out.weight": "lm.weight",
        "out.bias": "lm.bias | lm.out.bias",
    },
)


def skipped(kind):
    with nn.init.skipped():
        return kind(Config())


def file():
    """What a published file holds."""

    def array(*shape):
        return Tensor(rng.standard_normal(shape).astype(np.float32))

    tensors = {"old.emb.weight": array(5, 4), "lm.bias": array(5)}
    for i in range(2):
        for x in "qkv":
            tensors |= {f"old.h.{i}.{x}.weight": array(4, 4), f"old.h.{i}.{x}.bias": array(4)}
        tensors |= {
            f"old.h.{i}.up.weight": array(4, 6),
            f"old.h.{i}.up.bias": array(6),
            f"old.h.{i}.cube": array(4, 2, 3),
        }
        tensors |= {f"old.h.{i}.LayerNorm.weight": array(4), f"old.h.{i}.LayerNorm.bias": array(4)}
    return tensors


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.numpy().tobytes() == b.numpy().tobytes()


def test_round_trip():
    tensors, model = file(), skipped(Head)
    assert names.load(FAMILY, model, tensors) == names.Report()
    back = names.published(FAMILY, model)
    assert set(back) == set(tensors) and all(same(back[n], t) for n, t in tensors.items())
    block = model.body.blocks[1]
    assert np.array_equal(block.qkv.weight.numpy()[4:8], tensors["old.h.1.k.weight"].numpy())
    assert np.array_equal(block.up.weight.numpy(), tensors["old.h.1.up.weight"].numpy().T)
    assert np.array_equal(block.cube.weight.numpy(), tensors["old.h.1.cube"].numpy().reshape(4, 6).T)
    assert model.out.weight is model.body.tokens.weight and all(p.requires_grad for p in model.parameters())


def test_tensors_that_fit_are_not_copied_unless_they_are_small(monkeypatch):
    tensors, model = file(), skipped(Head)
    names.load(FAMILY, model, tensors)
    tensors["old.emb.weight"].numpy()[0, 0] = 66
    assert model.body.tokens.weight.numpy()[0, 0] != 66
    monkeypatch.setattr(names, "SMALL", 0)
    names.load(FAMILY, model := skipped(Head), tensors)
    tensors["old.emb.weight"].numpy()[0, 0] = 77
    assert model.body.tokens.weight.numpy()[0, 0] == 77


@pytest.mark.parametrize("kind", [Head, Body])
@pytest.mark.parametrize("prefix", ["old.", "", "ancient."])
def test_prefix_or_none(kind, prefix):
    tensors = {
        n.replace("old.", prefix): t for n, t in file().items() if kind is Head or not n.startswith("lm.")
    }
    model = skipped(kind)
    assert names.load(FAMILY, model, tensors) == names.Report()
    written = names.published(FAMILY, model)
    assert ("old.emb.weight" in written) == (kind is Head) and ("emb.weight" in written) == (kind is Body)


def test_old_norm_names_and_buffers():
    tensors = {
        n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t
        for n, t in file().items()
    }
    assert names.load(FAMILY, skipped(Head), {**tensors, "old.h.0.mask": Tensor([1.0])}) == names.Report()


def test_tied_tensors_on_either_side_on_both_and_apart():
    tensors = file()
    table = tensors.pop("old.emb.weight")
    for held in (
        {"old.emb.weight": table},
        {"lm.weight": table},
        {"old.emb.weight": table, "lm.weight": table.copy()},
    ):
        model = skipped(Head)
        assert names.load(FAMILY, model, {**tensors, **held}) == names.Report()
        assert model.out.weight is model.body.tokens.weight and same(model.out.weight, table)
        assert "lm.weight" not in names.published(FAMILY, model)
    model, other = skipped(Head), table + 1
    assert (
        names.load(FAMILY, model, {**tensors, "old.emb.weight": table, "lm.weight": other}) == names.Report()
    )
    assert same(model.out.weight, other) and same(model.body.tokens.weight, table)
    assert model.third.weight is model.body.tokens.weight
    assert same(names.published(FAMILY, model)["lm.weight"], other)


def test_an_alias():
    tensors = file()
    tensors["lm.out.bias"] = tensors.pop("lm.bias")
    model = skipped(Head)
    assert names.load(FAMILY, model, tensors) == names.Report() and same(
        model.out.bias, tensors["lm.out.bias"]
    )


def test_what_does_not_fit_is_reported_and_drawn():
    tensors = file()
    del tensors["old.h.1.k.weight"], tensors["lm.bias"]
    tensors["old.h.0.up.weight"] = Tensor(np.zeros((6, 4), np.float32))
    tensors["extra"] = Tensor([0.0])
    model = skipped(Head)
    report = names.load(FAMILY, model, tensors)
    assert report.missing == ["old.h.1.k.weight", "lm.bias"]
    assert report.misshaped == ["old.h.0.up.weight [6, 4], expected [4, 6]"]
    assert report.unexpected == ["extra"]
    assert "missing: " in report.problems() and "wrong shape: old.h.0.up.weight" in report.problems()
    assert model.body.blocks[1].qkv.weight.numpy().std() > 0 and not model.out.bias.numpy().any()


def test_dtypes():
    tensors = {n: t.astype("bfloat16") for n, t in file().items()}
    for asked, found in ((None, "bfloat16"), ("float64", "float64")):
        model = skipped(Head)
        names.load(FAMILY, model, tensors, asked)
        assert {p.dtype for p in model.parameters()} == {found}
    mixed = {**tensors, "lm.bias": file()["lm.bias"]}
    model = skipped(Head)
    names.load(FAMILY, model, mixed)
    assert {p.dtype for p in model.parameters()} == {"float32"}


def test_a_parameter_without_a_name():
    model = Body(Config())
    model.more = nn.Linear(2, 2)
    with pytest.raises(KeyError, match="family.NAMES has no entry for the parameter 'more.weight'"):
        names.published(FAMILY, model)


def test_a_head_with_names_of_its_own():
    class Plain(Head):
        NAMES, PREFIX = {"out.bias": "head.projection.bias"}, ""

    written = names.published(FAMILY, Plain(Config()))
    assert "head.projection.bias" in written and not any(name.startswith("old.") for name in written)
    assert any(name.startswith("old.") for name in names.published(FAMILY, Head(Config())))
