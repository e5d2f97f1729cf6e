"""Writes models/NAME: a tiny model directory saved by transformers, and inputs.npz and outputs.npz of it, for tests without PyTorch.

    python tests/golden/make_models.py NAME...      (all without a name; needs torch and transformers)

A family adds an entry to MODELS: the transformers class, its config, and what it is called with.
"""

import pathlib
import shutil
import sys

import numpy as np

here = pathlib.Path(__file__).parent
sys.path.insert(0, str(here.parent))

IDS = np.array([[5, 9, 2, 14, 3], [7, 1, 12, 0, 0]])
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
LABELS = np.array([[-100, 4, -100, 11, -100], [8, -100, 2, -100, -100]])

MODELS = {
    "bert": (
        "BertForPreTraining",
        dict(vocab_size=16, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20, max_position_embeddings=8),
        dict(input_ids=IDS, attention_mask=MASK, token_type_ids=np.array([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]]), labels=LABELS, next_sentence_label=np.array([0, 1])),
    ),
}  # fmt: skip


def make(name):
    from oracle import parity

    kind, config, inputs = MODELS[name]
    folder = here / "models" / name
    shutil.rmtree(folder, ignore_errors=True)
    model = parity.reference(kind, config, folder)
    out = parity.theirs(model, inputs, **parity.EXTRAS)
    found = {}
    for field in parity.fields(out):
        values = parity.arrays(out[field])
        found |= {field: values[0]} if len(values) == 1 else {f"{field}.{i}": v for i, v in enumerate(values)}
    np.savez_compressed(folder / "inputs.npz", **inputs)
    np.savez_compressed(folder / "outputs.npz", **found)


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        make(name)
