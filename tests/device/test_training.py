"""Training on the device "test": the weights of the CPU after ten steps, also over a stop; few waits."""

import numpy as np
import plmcore as plm
import pytest
import small
from plmcore import _core, models, optim, train
from plmcore.train.run_directory import RunDirectory

CONFIGS = {
    "gpt2": (dict(n_positions=16, n_embd=16, n_layer=2, n_head=2), "causal-lm"),
    "bert": (
        dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32),
        "masked-lm",
    ),
    "t5": (dict(d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2), "seq2seq-lm"),
}


class Batches:
    """Padded rows; labels in half of the places."""

    def __getitem__(self, step):
        rng = np.random.default_rng(step)
        ids, labels = rng.integers(5, 30, (2, 3, 10))
        labels[rng.random(labels.shape) < 0.5] = -100
        labels[:, 0] = 7
        mask = (np.arange(10) < rng.integers(4, 10, (3, 1))).astype(np.int64)
        labels[mask == 0] = -100
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def trainer(device, family, steps=10, optimizer=optim.AdamW, **options):
    plm.seed(0)
    keys, head = CONFIGS[family]
    config = models.config_from_dict({"model_type": family, "vocab_size": 30, "pad_token_id": 0, **keys})
    model = models.build(config, head).to(device)
    opt = optimizer(train.parameter_groups(model, lr=1e-2, weight_decay=0.1), lr=1e-2)
    return train.Trainer(model, Batches(), opt, steps=steps, clip_norm=1.0, **options)


@pytest.mark.parametrize("family", CONFIGS)
def test_ten_steps(family):
    here, there = (trainer(device, family) for device in ("cpu", "test"))
    for t in (here, there):
        t.run()
    assert there.model.device == "test" and small.same_bits(here.model, there.model)
    assert here.last == there.last


@pytest.mark.parametrize("kind", optim.KINDS)
def test_every_optimiser(kind):
    here, there = (trainer(d, "gpt2", 3, optim.KINDS[kind]) for d in ("cpu", "test"))
    for t in (here, there):
        t.run()
    assert small.same_bits(here.model, there.model)


def test_averages():
    for average in (optim.EMA, optim.TriggeredMean):
        found = []
        for device in ("cpu", "test"):
            t = trainer(device, "gpt2", 4)
            t.average = average(t.model.parameters())
            t.run()
            with t.average.averaged():
                found.append(small.weights(t.model))
        assert all(np.array_equal(a, found[1][name]) for name, a in found[0].items())


@pytest.mark.parametrize("family", CONFIGS)
def test_resumed(family, tmp_path):
    whole = trainer("cpu", family)
    whole.run()
    with RunDirectory(tmp_path / "run", quiet=True) as run:
        trainer("test", family, 6, directory=run, save_every=3).run()
    with RunDirectory(tmp_path / "run", quiet=True, new=False) as run:
        again = trainer("test", family, directory=run, save_every=3)
        again.restore(run.newest())
        assert again.step == 6
        again.run()
    assert small.same_bits(whole.model, again.model)


@pytest.mark.parametrize(("family", "most"), [("gpt2", 9), ("bert", 7), ("t5", 6)])
def test_waits_of_a_step(family, most):
    t = trainer("test", family)
    t.advance()
    before = _core.device_waits("test")
    t.advance()
    assert _core.device_waits("test") - before <= most
