"""Writes models/transfo-xl and models/transfo-xl-classification as make_models.py does the others, with the
transformers 4.35.2 that PLM_TRANSFORMERS_4 names: see tests/oracle/test_transfo_xl.py.

    PLM_TRANSFORMERS_4=DIR python tests/golden/make_transfo_xl.py      (needs torch)
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

here = pathlib.Path(__file__).parent
IDS = np.array([[5, 9, 2, 14, 3], [7, 1, 12, 13, 6]])
SMALL = dict(vocab_size=16, d_inner=8, n_layer=2, dropout=0.0)
MODELS = {
    "transfo-xl": (
        "TransfoXLLMHeadModel",
        dict(SMALL, cutoffs=[5, 11], d_model=8, d_embed=6, div_val=2, n_head=2, d_head=3, mem_len=4,
             clamp_len=3, same_length=True),
        dict(
            input_ids=IDS,
            labels=np.array([[5, 9, -100, 14, 3], [7, 1, 12, -100, 6]]),
            mems=np.linspace(-1, 1, 2 * 3 * 2 * 8, dtype=np.float32).reshape(2, 3, 2, 8),
        ),
    ),
    "transfo-xl-classification": (
        "TransfoXLForSequenceClassification",
        dict(SMALL, cutoffs=[7], d_model=6, d_embed=6, div_val=1, n_head=3, d_head=2, mem_len=3, clamp_len=-1,
             same_length=False, pre_lnorm=True, untie_r=False, num_labels=3, pad_token_id=0),
        dict(input_ids=np.where(IDS == 6, 0, IDS), labels=np.array([2, 0])),
    ),
}  # fmt: skip


def make(name):
    kind, config, inputs = MODELS[name]
    script = here.parent / "oracle" / "transfo_xl_reference.py"
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        (folder / "job.json").write_text(json.dumps({"class": kind, "config": config}))
        np.savez(folder / "inputs.npz", **inputs)
        subprocess.run([sys.executable, script, os.environ["PLM_TRANSFORMERS_4"], "make", folder], check=True)
        target = here / "models" / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder / "published", target)
        found = dict(np.load(folder / "outputs.npz"))
    kept = {k.removeprefix("plain."): v for k, v in found.items() if k.startswith("plain.")}
    np.savez_compressed(target / "inputs.npz", **inputs)
    np.savez_compressed(target / "outputs.npz", **kept, loss=found["labelled.loss"])


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        make(name)
