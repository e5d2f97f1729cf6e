"""Transformer-XL over contiguous text, through the command's door."""

import json

import numpy as np
import plmcore as plm
import pytest
from killing import Stop, stop_at
from plmcore.cli import demo

SMALL = [
    "data.vocab=300",
    "model.n_layer=2",
    "model.d_model=32",
    "model.d_embed=16",
    "model.n_head=2",
    "model.d_head=16",
    "model.d_inner=64",
    "model.cutoffs=[40, 120]",
    "model.div_val=2",
    "data.length=16",
    "data.batch=4",
    "train.mem_len=20",
    "train.evaluate_batches=2",
    "train.log_every=1",
]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "manual.txt"
    path.write_text(demo.manual()[:12_000])
    return path


def run(text, out, *, steps=6, changes=(), **options):
    changes = [*SMALL, *changes]
    return plm.pretrain(
        "transfo-xl", text=[text], out=out, steps=steps, save_every=2, quiet=True, changes=changes, **options
    )


@pytest.fixture(scope="module")
def finished(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "a"
    run(text, out)
    return out


def bits(folder):
    return (folder / "final" / "model.safetensors").read_bytes()


def losses(folder):
    return [m["loss"] for m in map(json.loads, (folder / "metrics.jsonl").open()) if "loss" in m]


def test_a_segment_sees_the_memory_of_those_before(finished, text, tmp_path):
    saved, _ = plm.safetensors.read(finished / "checkpoints" / "step-00000006" / "carried.safetensors")
    assert {name: tuple(m.shape) for name, m in saved.items()} == {str(i): (20, 4, 32) for i in range(2)}
    run(text, tmp_path / "without", changes=["train.mem_len=0"])
    assert not (tmp_path / "without" / "checkpoints" / "step-00000006" / "carried.safetensors").exists()
    assert bits(tmp_path / "without") != bits(finished)


def test_the_model_keeps_the_memory_that_it_was_trained_with(finished):
    lm = plm.load(finished / "final")
    assert (lm.config.mem_len, lm.config.cutoffs, lm.config.div_val) == (20, (40, 120), 2)
    assert lm.generate("The", max_new_tokens=3, do_sample=False)
    text = demo.manual()[12_000:13_000]
    known = [plm.load(finished / "final", mem_len=n).perplexity(text, window=16) for n in (20, 60)]
    assert known[0] != known[1] and all(np.isfinite(p.bits_per_character) for p in known)


@pytest.mark.parametrize("step", [1, 3])
def test_a_run_that_was_stopped_goes_on_with_its_memory(finished, text, tmp_path, step):
    with pytest.raises(Stop):
        run(text, tmp_path / "b", callbacks=[stop_at(step)])
    plm.pretrain(out=tmp_path / "b", resume=True, quiet=True)
    assert bits(tmp_path / "b") == bits(finished)
    assert losses(tmp_path / "b") == losses(finished)


def test_each_token_is_predicted_once(text, tmp_path):
    """The last token of a segment is the first of the next, and is remembered once."""
    seen = []

    def watch(trainer, metrics):
        seen.append(trainer.carried.layers[0].shape[0])

    run(text, tmp_path / "c", steps=3, callbacks=[watch])
    assert seen == [15, 20, 20]
    table = (tmp_path / "c" / "config.toml").read_text()
    assert "stride = 15" in table and "streams = 4" in table
