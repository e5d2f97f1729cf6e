"""Transformer-XL against transformers 4.35.2, which has a process and a directory of its own:

    pip install --no-deps --target DIR transformers==4.35.2 'tokenizers<0.19' 'huggingface_hub<1' \
        requests urllib3 idna charset-normalizer certifi
    PLM_TRANSFORMERS_4=DIR python -m pytest tests/oracle/test_transfo_xl.py
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import plmcore as plm
import pytest
from plmcore import models
from plmcore.models import names

PACKAGES = os.environ.get("PLM_TRANSFORMERS_4")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(PACKAGES is None, reason="PLM_TRANSFORMERS_4 names no transformers 4.35.2"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]

B, T = 3, 6
PLAIN = dict(dropout=0.0, clamp_len=-1, same_length=False, n_layer=2, n_head=2, d_head=5, d_inner=14)
CONFIGS = {
    "no clusters": dict(PLAIN, vocab_size=40, cutoffs=[], d_model=12, d_embed=12, div_val=1, mem_len=8),
    "one cluster": dict(PLAIN, vocab_size=40, cutoffs=[15], d_model=12, d_embed=12, div_val=1, mem_len=3),
    "narrow table": dict(PLAIN, vocab_size=40, cutoffs=[15, 22], d_model=12, d_embed=8, div_val=1, mem_len=5),
    "narrow, whole": dict(PLAIN, vocab_size=40, cutoffs=[], d_model=12, d_embed=8, div_val=1, mem_len=5),
    "divided": dict(PLAIN, vocab_size=50, cutoffs=[10, 25, 40], d_model=16, d_embed=16, div_val=2, mem_len=7),
    "divided, no clusters": dict(
        PLAIN, vocab_size=50, cutoffs=[], d_model=16, d_embed=10, div_val=2, mem_len=7
    ),
    "untied": dict(
        PLAIN, vocab_size=50, cutoffs=[10, 25], d_model=16, d_embed=12, div_val=2, mem_len=7,
        proj_share_all_but_first=False, tie_word_embeddings=False,
    ),
    "all projections tied": dict(
        PLAIN, vocab_size=50, cutoffs=[10, 25], d_model=16, d_embed=12, div_val=2, mem_len=7,
        tie_projs=[True, True, True],
    ),
    "clamped": dict(
        PLAIN, vocab_size=40, cutoffs=[12], d_model=12, d_embed=12, div_val=2, mem_len=9, clamp_len=4
    ),
    "same length": dict(
        PLAIN, vocab_size=40, cutoffs=[12], d_model=12, d_embed=12, div_val=2, mem_len=4, same_length=True
    ),
    "same length, longer": dict(
        PLAIN, vocab_size=40, cutoffs=[], d_model=12, d_embed=12, div_val=1, mem_len=9, same_length=True,
        clamp_len=5, untie_r=False,
    ),
    "pre-norm": dict(
        PLAIN, vocab_size=40, cutoffs=[12, 30], d_model=12, d_embed=12, div_val=1, mem_len=5, pre_lnorm=True
    ),
    "pre-norm, shared biases": dict(
        PLAIN, vocab_size=60, cutoffs=[12, 30, 31], d_model=20, d_embed=20, div_val=2, mem_len=6,
        pre_lnorm=True, untie_r=False, layer_norm_epsilon=1e-3,
    ),
    "no memory": dict(PLAIN, vocab_size=40, cutoffs=[9], d_model=12, d_embed=12, div_val=1, mem_len=0),
}  # fmt: skip
GENERATE = {
    "greedy": dict(max_new_tokens=6, do_sample=False),
    # that release divides the scores of beams by lengths with the prompt
    "beams": dict(max_new_tokens=6, do_sample=False, num_beams=3, length_penalty=0.0),
}


def call(task, folders):
    script = pathlib.Path(__file__).parent / "transfo_xl_reference.py"
    subprocess.run([sys.executable, script, PACKAGES, task, *map(str, folders)], check=True, timeout=600)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder for each config, of the causal-lm head and of the others."""
    top = tmp_path_factory.mktemp("transfo-xl")
    jobs = {name: ("TransfoXLLMHeadModel", config) for name, config in CONFIGS.items()}
    jobs["base"] = "TransfoXLModel", CONFIGS["divided"]
    padded = CONFIGS["same length"] | {"pad_token_id": 0}
    jobs["classification"] = "TransfoXLForSequenceClassification", padded
    for seed, (name, (kind, config)) in enumerate(jobs.items()):
        rng, folder = np.random.default_rng(seed), top / name
        folder.mkdir()
        V = config["vocab_size"]
        inputs = dict(input_ids=rng.integers(1, V, (B, T)), segments=rng.integers(1, V, (3, B, T)))
        if config["mem_len"]:
            inputs["mems"] = rng.normal(size=(2, 3, B, config["d_model"])).astype(np.float32)
        job = dict(config=config, seed=seed)
        job["class"] = kind
        if kind == "TransfoXLLMHeadModel":
            inputs["labels"] = np.where(rng.random((B, T)) < 0.7, rng.integers(0, V, (B, T)), -100)
            inputs["labels"][:, 1:3] = rng.integers(0, V, (B, 2))
            job["generate"] = GENERATE
        if name == "classification":
            inputs["input_ids"][1, 4:] = 0
            inputs["labels"] = np.array([0, 1, 1])
        (folder / "job.json").write_text(json.dumps(job))
        np.savez(folder / "inputs.npz", **inputs)
    call("make", [top / name for name in jobs])
    for name in jobs:
        plm.load(top / name / "published").save(top / name / "saved")
    call("open", [top / name for name in jobs])
    return top


def near(what, ours, expected, tolerance):
    assert ours.shape == expected.shape, f"{what}: {ours.shape}, expected {expected.shape}"
    error = np.abs(ours - expected).max(initial=0)
    assert error <= tolerance * max(1, np.abs(expected).max(initial=0)), f"{what}: off by {error:.2e}"


def same(found, prefix, out, tolerance=1e-5):
    """Every field that is there of the reference."""
    compared = 0
    for name, expected in found.items():
        first, *rest = name.split(".")
        if first == prefix and rest[0] != "losses":
            field, *layer = rest
            ours = out[field] if not layer else out[field][int(layer[0])]
            near(name, ours.numpy(), expected, tolerance)
            compared += 1
    assert compared


def opened(made, name, **options):
    folder = made / name
    return plm.load(folder / "published", **options), *(
        dict(np.load(folder / f"{file}.npz")) for file in ("inputs", "outputs")
    )


@pytest.mark.parametrize("name", [*CONFIGS, "base", "classification"])
def test_outputs(made, name):
    lm, inputs, expected = opened(made, name)
    assert lm.model.num_parameters() == models.count_parameters(lm.config, lm.head) == expected["count"]
    plain = {k: v for k, v in inputs.items() if k in ("input_ids", "mems")}
    with plm.no_grad():
        same(expected, "plain", lm(**plain, output_hidden_states=True, output_attentions=True))
        if "labels" in inputs:
            same(expected, "labelled", lm(**plain, labels=inputs["labels"]))


@pytest.mark.parametrize("name", [*CONFIGS, "base"])
def test_a_text_in_segments(made, name):
    lm, inputs, expected = opened(made, name)
    mems = None
    with plm.no_grad():
        for k, ids in enumerate(inputs["segments"]):
            out = lm(input_ids=ids, mems=mems)
            mems = out.mems
            same(expected, f"segment{k}", out)
        out = lm(input_ids=inputs["segments"][0], mems=())
        same({k: v for k, v in expected.items() if v.size}, "empty", out)


@pytest.mark.parametrize("name", CONFIGS)
def test_gradients_and_a_step(made, name):
    lm, inputs, _ = opened(made, name, dtype="float64")
    expected = dict(np.load(made / name / "stepped.npz"))
    given = {k: v for k, v in inputs.items() if k != "segments"}
    given |= {"mems": inputs["mems"].astype(np.float64)} if "mems" in inputs else {}
    loss = lm(**given).loss
    near("loss", loss.numpy(), expected["loss"], 1e-9)
    loss.backward()
    family = models.family(lm.config)
    found = {n: p.grad for n, p in lm.named_parameters() if p.grad is not None}
    ours = names.published(family, lm.model, found)
    wanted = {k.removeprefix("grad."): v for k, v in expected.items() if k.startswith("grad.")}
    assert set(wanted) <= set(ours)
    for key, value in wanted.items():
        near(f"gradient of {key}", ours[key].numpy(), value, 1e-7)
    plm.optim.SGD(lm.parameters(), lr=0.1).step()
    ours = names.published(family, lm.model)
    for key, value in expected.items():
        if key.startswith("after."):
            near(key, ours[key.removeprefix("after.")].numpy(), value, 1e-7)


@pytest.mark.parametrize("way", GENERATE)
@pytest.mark.parametrize("name", CONFIGS)
def test_generation(made, name, way):
    lm, inputs, expected = opened(made, name)
    ours = lm.generate(inputs["segments"][0], **GENERATE[way])
    np.testing.assert_array_equal(ours, expected[f"generate.{way}"])


@pytest.mark.parametrize("name", [*CONFIGS, "base", "classification"])
def test_saved_directories_open_there(made, name):
    info = json.loads((made / name / "opened.json").read_text())
    assert {k: [n for n in v if not n.endswith("pos_emb.inv_freq")] for k, v in info.items()} == {
        k: [] for k in info
    }
    before, after = (dict(np.load(made / name / f"{file}.npz")) for file in ("outputs", "opened"))
    assert set(before) == set(after)
    for key, value in before.items():
        near(key, after[key], value, 1e-6)
