"""Models trained on device "cuda" and on the CPU, with dropout: the same losses; saved models go from one to
the other.
"""

import numpy as np
import plmcore as plm
import pytest
from every_family import ids, model
from plmcore import _core, optim, train

FAMILIES = {
    "awd-lstm": "causal-lm",
    "rnn-seq2seq": "seq2seq-lm",
    "bert": "masked-lm",
    "gpt2": "causal-lm",
    "t5": "seq2seq-lm",
    "bart": "seq2seq-lm",
}
NEEDS_ATTENTION = {"bert", "gpt2", "t5", "bart"}


def build(family, device):
    if family in NEEDS_ATTENTION and not _core.has_kernel("attention", "cuda"):
        pytest.skip("attention has no kernel on cuda yet")
    plm.seed(0)
    lm = model(family, FAMILIES[family]).to(device).train()
    return lm, optim.AdamW(train.parameter_groups(lm.model, lr=1e-2, weight_decay=0.1), lr=1e-2)


def steps(lm, optimizer, count, first=0):
    """The losses of `count` steps."""
    losses = []
    for step in range(first, first + count):
        plm.seed(step)
        given = ids(lm, FAMILIES[lm.config.model_type])
        batch = {"input_ids": (given + step) % 20 + 5, "labels": (given + 2 * step) % 20 + 5}
        loss = lm(**batch).loss
        loss.backward()
        optimizer.step(clip_norm=1.0)
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("family", FAMILIES)
def test_ten_steps(family):
    here, there = (steps(*build(family, device), 10) for device in ("cpu", "cuda"))
    assert len(set(here)) == 10
    np.testing.assert_allclose(there, here, atol=1e-4)


@pytest.mark.parametrize("family", ["awd-lstm", "bert"])
def test_a_saved_model_moves_between_devices(family, tmp_path):
    lm, optimizer = build(family, "cuda")
    steps(lm, optimizer, 2)
    lm.eval().save(tmp_path / "model")
    batch = {"input_ids": np.full((2, 4), 7), "labels": np.full((2, 4), 8)}
    found = [lm(**batch).loss.item()]
    for device in ("cpu", "cuda"):
        again = plm.load(tmp_path / "model", device=device).eval()
        assert again.device == device
        found.append(again(**batch).loss.item())
    np.testing.assert_allclose(found[1:], found[0], atol=1e-5)


@pytest.mark.parametrize("kind", optim.KINDS)
def test_every_optimiser(kind):
    found = []
    for device in ("cpu", "cuda"):
        lm, _ = build("awd-lstm", device)
        found.append(
            steps(
                lm, optim.KINDS[kind](train.parameter_groups(lm.model, lr=1e-3, weight_decay=0.1), lr=1e-3), 3
            )
        )
    np.testing.assert_allclose(*found, atol=1e-4)
