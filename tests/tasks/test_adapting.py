import json

import numpy as np
import plmcore as plm
import pytest
import samples
from plmcore import models
from plmcore.models import names
from plmcore.tasks import adapting, lora, task_settings
from plmcore.tasks.features import Features
from plmcore.train import groups

FAST = ["data.length=32", "data.batch=16", "optim.lr=3e-3"]
NONE = {"freeze": None, "unfreeze_every": None, "reinit": 0, "noise": 0.0, "lora_rank": 0}


def classifier(directory, family="bert"):
    folder = directory(family)
    plm.seed(5)
    with pytest.warns(UserWarning, match="drawn at random"):
        return plm.load(folder, head="sequence-classification").model


def weights(model):
    return {name: np.array(t.numpy()) for name, t in model.state_dict().items()}


def as_published(model):
    """The tensors as they stand in a file: query, key and value apart where the family has them so."""
    found = names.published(models.family(model.config), model)
    return {name: np.array(t.numpy()) for name, t in found.items()}


@pytest.mark.parametrize("family", ["bert", "gpt2", "xlnet", "bart", "t5"])
def test_noise_is_in_proportion_to_each_published_tensor(directory, family):
    """At most half the strength times the tensor's own spread, and nearly that somewhere in a large one."""
    model = plm.load(directory(family), head="base").model
    for (
        name,
        p,
    ) in model.named_parameters():  # query, key and value of very different spreads, and one of none
        if parts := {"qkv": 3, "kv": 2}.get(name.split(".")[-2] if "." in name else ""):
            rows = np.repeat(10.0 ** np.arange(parts), p.shape[0] // parts)
            plm._core.assign(
                p, np.array(p.numpy()) * rows.reshape(-1, *[1] * (p.ndim - 1)).astype(np.float32)
            )
    before = as_published(model)
    adapting.add_noise(model, 0.2, seed=1)
    after = as_published(model)
    spreads = {}
    for name in before:
        constant = before[name].min() == before[name].max()
        moved, width = np.abs(after[name] - before[name]).max(), 0.1 * before[name].astype(np.float64).std()
        if constant:
            assert moved == 0, name
        else:
            assert 0.5 * width < moved <= width * 1.001, name
            spreads[name] = width
    assert max(spreads.values()) > 5 * min(spreads.values())


def test_a_constant_that_no_float_mean_meets_stays(directory):
    """0.1 in float32: the mean of many is not quite it, and the deviation from that not quite 0."""
    model = plm.load(directory("bert"), head="base").model
    norm = model.embeddings.norm.gamma
    plm._core.assign(norm, np.full(norm.shape, 0.1, np.float32))
    adapting.add_noise(model, 0.2, seed=1)
    assert (norm.numpy() == np.float32(0.1)).all()


def test_noise_is_for_the_body_and_the_same_each_time(directory):
    model = classifier(directory)
    before = weights(model)
    adapting.add_noise(model, 0.2, seed=1)
    after = weights(model)
    changed = {name for name in before if (before[name] != after[name]).any()}
    assert changed and all(name.startswith("body.") for name in changed)
    again = classifier(directory)
    adapting.add_noise(again, 0.2, seed=1)
    assert all((weights(again)[n] == after[n]).all() for n in after)


def test_fresh_top_layers(directory):
    model = classifier(directory)
    before = weights(model)
    adapting.reinitialise(model, 1)
    changed = {name for name, value in weights(model).items() if (value != before[name]).any()}
    assert changed and all(".blocks.1." in n or ".pooler." in n for n in changed)
    assert {n for n in before if ".blocks.1." in n and before[n].ndim == 2} <= changed
    with pytest.raises(ValueError, match="from 0 to the 2 layers"):
        adapting.reinitialise(model, 3)
    base = plm.load(directory("bert"), head="base").model
    reads = Features(base.config, base, "mix")
    before = weights(reads)
    adapting.reinitialise(reads, 2)
    changed = {name for name, value in weights(reads).items() if (value != before[name]).any()}
    assert changed and all(".blocks." in n or ".pooler." in n for n in changed)


@pytest.mark.parametrize(
    ("what", "frozen"), [("embeddings", {0}), (1, {0, 1}), ("body", {0, 1, 2, "pooler"})]
)
def test_frozen_parts(directory, what, frozen):
    model = classifier(directory)
    adapting.freeze(model, what)
    for name, p in model.named_parameters():
        part = "pooler" if "pooler" in name else groups.depth(name, 3)
        assert p.requires_grad == (part not in frozen), name
    with pytest.raises(ValueError, match="adapt.freeze must be none"):
        adapting.freeze(model, "tail")


@pytest.fixture
def without_pooler(directory, tmp_path):
    """A model as pre-trained by masking alone: its directory has no pooler."""
    lm = plm.load(directory("bert"), head="masked-lm")
    lm.save(tmp_path / "masked")
    return tmp_path / "masked"


@pytest.mark.parametrize("changes", [["adapt.freeze=body"], ["adapt.lora_rank=2"]])
def test_a_pooler_drawn_at_random_learns(without_pooler, table, tmp_path, changes):
    """A frozen body is what was pre-trained; the adapter has what was not."""
    train = table("train.tsv", samples.reviews(32))
    first = {}
    for steps, rate in ((1, "1e-30"), (4, "3e-3")):
        out = tmp_path / f"run{steps}"
        changed = ["data.length=32", "data.batch=16", f"optim.lr={rate}", *changes]
        plm.finetune(
            without_pooler, "classification", train=train, out=out, quiet=True, steps=steps, changes=changed
        )
        found = weights(plm.load(out / "final").model)
        if not first:
            first = found
    moved = {name for name in found if (found[name] != first[name]).any()}
    assert {"body.pooler.dense.weight", "classifier.weight"} <= {
        n.replace("pooler.weight", "pooler.dense.weight") for n in moved
    }
    if "adapt.freeze=body" in changes:
        assert all("pooler" in name or name.startswith("classifier") for name in moved)
    else:
        tensors, _ = plm.safetensors.read(out / "adapter" / "adapter_model.safetensors")
        assert "base_model.model.bert.pooler.dense.weight" in tensors
        saved = json.loads((out / "adapter" / "adapter_config.json").read_text())["modules_to_save"]
        assert saved == ["classifier", "pooler"]


def test_new_tokens_of_a_frozen_decoder_are_named(directory, table, tmp_path):
    out, train = tmp_path / "run", table("train.tsv", samples.reviews(16))
    changes = [*FAST, "adapt.freeze=body"]
    plm.finetune(
        directory("gpt2"), "classification", train=train, out=out, quiet=True, steps=1, changes=changes
    )
    assert (
        "rows of _start_, _delimiter_, _classify_ are drawn at random, and do not learn"
        in (out / "log.txt").read_text()
    )


def test_fresh_layers_learn_in_a_frozen_body(directory):
    model = classifier(directory)
    adapting.prepare(model, NONE | {"freeze": "body", "reinit": 1}, seed=0)
    learning = {name for name, p in model.named_parameters() if p.requires_grad}
    assert all(".blocks.1." in n or ".pooler." in n or not n.startswith("body.") for n in learning)
    assert any(".blocks.1." in n for n in learning) and any(".pooler." in n for n in learning)


def test_layers_thaw_from_the_top(directory):
    model = classifier(directory)
    thaw = adapting.unfreezing(model, NONE | {"unfreeze_every": 1}, per_epoch=10)

    class At:
        step = 0

    seen = []
    for At.step in (0, 9, 10, 20, 30, 100):
        thaw(At, {})
        seen.append(min(groups.depth(n, 3) for n, p in model.named_parameters() if p.requires_grad))
    assert seen == [3, 3, 2, 1, 0, 0]


def test_only_what_is_not_frozen_learns(directory, table, tmp_path):
    start = weights(plm.load(directory("bert")).model)
    train = table("train.tsv", samples.reviews(64))
    plm.finetune(
        directory("bert"),
        "classification",
        train=train,
        out=tmp_path / "run",
        epochs=1,
        quiet=True,
        changes=[*FAST, "adapt.freeze=1"],
    )
    end = weights(plm.load(tmp_path / "run" / "final").model)
    for name in (n for n in end if n in start):
        same = (end[name] == start[name]).all()
        assert same == (groups.depth(name, 3) <= 1), name


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_lora(directory, table, tmp_path, family):
    start = weights(plm.load(directory(family)).model)
    out = tmp_path / "run"
    plm.finetune(
        directory(family),
        "classification",
        train=table("train.tsv", samples.reviews(96)),
        dev=table("dev.tsv", samples.reviews(32, 96)),
        out=out,
        epochs=16,
        quiet=True,
        changes=[*FAST, "optim.lr=1e-2", "adapt.lora_rank=4", 'adapt.lora_targets=["attn.qkv", "mlp.up"]'],
    )
    scores = json.loads((out / "scores.json").read_text())["dev"]
    assert scores["accuracy"] >= 0.9
    merged = plm.load(out / "final")
    changed = {
        n
        for n, v in weights(merged.model).items()
        if n in start and v.shape == start[n].shape and (v != start[n]).any()
    }
    assert {n.rpartition(".blocks.")[2][2:] for n in changed} == {"attn.qkv.weight", "mlp.up.weight"}

    config = json.loads((out / "adapter" / "adapter_config.json").read_text())
    assert (
        config["peft_type"] == "LORA" and config["r"] == 4 and config["fan_in_fan_out"] == (family == "gpt2")
    )
    targets = {"bert": ["dense", "key", "query", "value"], "gpt2": ["c_attn", "c_fc"]}
    assert config["target_modules"] == targets[family]
    tensors, _ = plm.safetensors.read(out / "adapter" / "adapter_model.safetensors")
    key = {"bert": "bert.encoder.layer.0.attention.self.query", "gpt2": "transformer.h.0.attn.c_attn"}[family]
    assert tensors[f"base_model.model.{key}.lora_A.weight"].shape == (4, 32)
    assert tensors[f"base_model.model.{key}.lora_B.weight"].shape == ({"bert": 32, "gpt2": 96}[family], 4)
    if family == "gpt2":
        return  # its table of tokens has grown
    plm.seed(0)
    with pytest.warns(UserWarning, match="drawn at random"):
        other = plm.load(directory(family), head="sequence-classification").model
    lora.load(other, out / "adapter")
    for name, value in weights(other).items():
        if ".pooler." not in name:
            np.testing.assert_allclose(value, weights(merged.model)[name], atol=1e-6, err_msg=name)
    (out / "adapter" / "adapter_config.json").write_text("{}")
    with pytest.raises(plm.FormatError, match="not the config of a LoRA adapter"):
        lora.load(other, out / "adapter")


@pytest.mark.parametrize(("family", "changes"), [
    ("bert", ["adapt.pooling=concat"]), ("bert", ["adapt.layers=mix"]),
    ("gpt2", ["adapt.layers=1", "adapt.pooling=last"]),
])  # fmt: skip
def test_lora_below_features(directory, table, tmp_path, family, changes):
    """The adapter is that of the body alone; what reads it lies beside the merged weights."""
    out, rows = tmp_path / "run", samples.reviews(32)
    plm.finetune(
        directory(family),
        "classification",
        train=table("train.tsv", rows),
        dev=table("dev.tsv", rows),
        out=out,
        steps=4,
        quiet=True,
        changes=[*FAST, "adapt.lora_rank=2", *changes],
    )
    config = json.loads((out / "adapter" / "adapter_config.json").read_text())
    assert config["task_type"] == "FEATURE_EXTRACTION" and config["modules_to_save"] is None
    lm = plm.load(out / "final")
    found = [f["label"] for f in lm.classify([text for text, _ in rows])]
    assert found == [
        json.loads(line)["label"] for line in (out / "dev-predictions.jsonl").read_text().splitlines()
    ]
    if family == "bert":  # the table of tokens of the other has grown
        base = plm.load(directory(family), head="base").model
        lora.load(base, out / "adapter")
        for name, value in weights(base).items():
            np.testing.assert_allclose(value, weights(lm.model.body)[name], atol=1e-6, err_msg=name)


def test_rates(directory, table, tmp_path):
    """Of a narrow BERT, and of updates of low rank, unless they are given."""
    train = table("train.tsv", samples.reviews(20))
    given = {
        "run": {"model": str(directory("bert")), "task": "classification"},
        "data": {"train": str(train)},
    }

    def rate(*changes):
        return task_settings.new(given, None, changes)["optim"]["lr"]

    assert rate() == pytest.approx(3e-4) and rate("adapt.lora_rank=4") == pytest.approx(1e-3)
    assert rate("adapt.lora_rank=4", "optim.lr=0.5") == 0.5
