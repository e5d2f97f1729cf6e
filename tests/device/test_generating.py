"""Searches on the device "test": the ids of the CPU, and one wait for each token."""

import numpy as np
import pytest
from generating_models import EOS, MODELS, PAD, model
from plmcore import _core

RULES = {
    "greedy": dict(),
    "beams": dict(num_beams=3),
    "samples": dict(do_sample=True, seed=4, num_return_sequences=2),
}
PROMPTS = np.array([[4, 9, 5, 7], [11, 3, 8, 8]])


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("family", MODELS)
def test_bits(family, rules):
    options = dict(max_new_tokens=8, eos_token_id=EOS, pad_token_id=PAD, output_scores=True, **RULES[rules])
    expected, found = (model(family).to(device).generate(PROMPTS, **options) for device in ("cpu", "test"))
    assert np.array_equal(expected.sequences, found.sequences)
    assert np.array_equal(expected.scores, found.scores)


@pytest.mark.parametrize("rules", ["greedy", "beams"])
@pytest.mark.parametrize("family", ["gpt2", "bart", "mass", "t5"])
def test_a_token_takes_one_wait(family, rules):
    lm = model(family).to("test")
    counts = []
    for n in (4, 12):
        before = _core.device_waits("test")
        lm.generate(PROMPTS, max_new_tokens=n, min_new_tokens=n, eos_token_id=EOS, **RULES[rules])
        counts.append(_core.device_waits("test") - before)
    assert counts[1] - counts[0] == 8  # the logits of each token, and nothing else
    assert counts[0] <= 4 + 4
