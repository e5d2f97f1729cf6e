"""Writes tests/golden/models/glm: a directory with the published names, and what the torch re-expression of
tests/oracle/test_glm.py computes. transformers has no GLM of 2021.

python tests/golden/make_glm.py
"""

import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from oracle import test_glm  # noqa: E402

CONFIG = dict(vocab_size=16, hidden_size=6, num_layers=2, num_attention_heads=3, max_sequence_length=7)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    theirs, _ = test_glm.both(CONFIG, folder)
    given = dict(
        input_ids=np.array([[1, 4, 9, 2, 5, 11, 12, 5], [1, 7, 4, 4, 2, 5, 5, 0]]),
        position_ids=np.array([[0, 1, 2, 3, 1, 1, 1, 2], [0, 1, 2, 3, 4, 3, 2, 0]]),
        block_position_ids=np.array([[0, 0, 0, 0, 1, 2, 3, 1], [0, 0, 0, 0, 0, 1, 1, 0]]),
        source_lengths=np.array([4, 5]),
        attention_mask=np.array([[1] * 8, [1] * 7 + [0]]),
    )
    labels = np.array([[-100] * 4 + [11, 12, 6, 6], [-100] * 5 + [6, 6, -100]])
    _, logits = theirs(**{k: test_glm.torch.tensor(v) for k, v in given.items()})
    outputs = dict(logits=logits, loss=test_glm.loss_of(logits, labels))
    outputs |= {f"hidden_states.{i}": state for i, state in enumerate(theirs.states)}
    np.savez(folder / "inputs.npz", **given, labels=labels)
    np.savez(folder / "outputs.npz", **{name: t.detach().numpy() for name, t in outputs.items()})


if __name__ == "__main__":
    main(HERE / "models" / "glm")
