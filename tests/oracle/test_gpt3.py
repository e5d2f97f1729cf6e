"""GPT-3 against transformers' GPT-2 with a mask of its own in each layer."""

import copy
import json

import numpy as np
import plmcore as plm
import pytest
from oracle import parity  # skips where torch and transformers are not installed
from oracle.test_gpt2 import CONFIGS, HEADS, SIDES, B, T, inputs

torch = parity.torch
pytestmark = pytest.mark.oracle

PATTERNS = {
    "alternating": dict(attention_layers=["dense", "banded"], attention_band=3),
    "strided": dict(attention_layers=["banded", "strided"], attention_band=2, attention_stride=3),
    "joined": dict(attention_layers=["banded+strided"], attention_band=2, attention_stride=4),
    "alone": dict(attention_layers=["banded", "dense", "strided"], attention_band=1, attention_stride=100),
}


def seen(pattern, layer, length):
    """bool [T, T], of the definition."""
    kind = pattern["attention_layers"][layer % len(pattern["attention_layers"])]
    i, j = np.mgrid[:length, :length]
    near, on = i - j < pattern["attention_band"], (i - j) % pattern.get("attention_stride", 1) == 0
    return (j <= i) & {"dense": j <= i, "banded": near, "strided": on, "banded+strided": near | on}[kind]


def reference(name, config, pattern, folder):
    """GPT-2 with masks, and its directory as one of GPT-3."""
    model = parity.reference(name, config, folder)
    for layer, block in enumerate(model.transformer.h if hasattr(model, "transformer") else model.h):

        def narrow(module, args, kwargs, layer=layer):
            mask = kwargs["attention_mask"]  # [B, 1, T, T], 0 or the least number
            allowed = torch.tensor(seen(pattern, layer, mask.shape[-1]))
            return args, {**kwargs, "attention_mask": torch.where(allowed, mask, torch.finfo(mask.dtype).min)}

        block.attn.register_forward_pre_hook(narrow, with_kwargs=True)
    file = folder / "config.json"
    values = json.loads(file.read_text()) | pattern
    values |= dict(model_type="gpt3", architectures=[name.replace("GPT2", "GPT3")])
    file.write_text(json.dumps(values))
    return model


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_heads(pattern, name, tmp_path):
    rng = np.random.default_rng(len(name) + len(pattern))
    config, pattern = CONFIGS["odd"], PATTERNS[pattern]
    model = reference(name, config, pattern, tmp_path)
    batches = []
    for side in SIDES:
        batch = inputs(rng, config, side)
        batches += [batch, *({**batch, **labels} for labels in HEADS[name](rng, config, batch))]
    for dtype, tolerance, of_gradients in (("float32", 1e-5, 1e-4), ("float64", 1e-9, 1e-7)):
        for batch in batches:
            lm, other = plm.load(tmp_path, dtype=dtype), copy.deepcopy(model).to(getattr(torch, dtype))
            for options in ({}, parity.EXTRAS):
                with torch.no_grad(), plm.no_grad():
                    parity.same_output(
                        lm(**batch, **options), parity.theirs(other, batch, **options), batch, tolerance
                    )
            if any("label" in key or "positions" in key for key in batch):
                lm(**batch).loss.backward()
                parity.theirs(other, batch).loss.backward()
                parity.same_gradients(lm, other, of_gradients)


def test_double_heads(tmp_path):
    rng = np.random.default_rng(7)
    config, K = CONFIGS["odd"], 3
    model = reference("GPT2DoubleHeadsModel", config, PATTERNS["alternating"], tmp_path)
    batch = {k: v.reshape(B, K, T) for k, v in inputs(rng, config, "right", (B * K, T)).items()}
    batch |= dict(mc_token_ids=rng.integers(0, T, (B, K)), mc_labels=rng.integers(0, K, B))
    with torch.no_grad(), plm.no_grad():
        parity.same_output(plm.load(tmp_path)(**batch), parity.theirs(model, batch), batch, 1e-5)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("side", SIDES)
def test_trace(side, pattern, tmp_path):
    rng = np.random.default_rng(16)
    reference("GPT2LMHeadModel", CONFIGS["odd"], PATTERNS[pattern], tmp_path)
    batches = [inputs(rng, CONFIGS["odd"], side, shape) for shape in ((3, 5), (2, 12), (7, 1))]
    parity.check_trace(plm.load(tmp_path), batches, ["logits"])
    batches = [dict(b, labels=parity.labels(rng, 53, b["input_ids"].shape, 0.9)) for b in batches[:2]]
    parity.check_trace(plm.load(tmp_path), batches, ["logits", "loss"])
