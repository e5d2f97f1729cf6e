"""Tiny models that transformers saved, with what it computed: no PyTorch needed. tests/golden/make_models.py
writes them.
"""

import pathlib

import numpy as np
import plmcore as plm
import pytest
from plmcore.models.names import Report

FOLDERS = sorted((pathlib.Path(__file__).parents[1] / "golden" / "models").iterdir())


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_outputs(folder):
    with np.load(folder / "inputs.npz") as inputs, np.load(folder / "outputs.npz") as expected, plm.no_grad():
        inputs, expected = dict(inputs), dict(expected)
        lm = plm.load(folder)
        assert lm.report == Report()
        out = lm(**inputs, output_hidden_states=True, output_attentions=True)
        plain = lm(**inputs)
    assert len(expected) > 3
    two_stacks = any(name.startswith("encoder") for name in expected)
    for name, e in expected.items():
        field, _, layer = name.partition(".")
        a = (flat(out[field])[int(layer)] if layer else out[field]).numpy()
        of_target = two_stacks and not field.startswith("encoder")
        seen = inputs.get("decoder_attention_mask" if of_target else "attention_mask")
        if seen is not None and a.ndim > 2 and seen.shape == ((a.shape[0], a.shape[-2])):
            seen = seen.astype(bool)[:, None, :, None] if a.ndim == 4 else seen.astype(bool)[..., None]
            e = np.where(seen, e, 0)  # hidden positions are 0 here
        near = dict(atol=1e-5 * max(1.0, np.abs(e).max()), rtol=0, err_msg=name)
        np.testing.assert_allclose(a, e, **near)
        if not layer and name not in ("hidden_states", "attentions"):
            np.testing.assert_allclose(plain[field].numpy(), a, **near)
