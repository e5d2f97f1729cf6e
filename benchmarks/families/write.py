"""Writes the models with random weights: python benchmarks/families/write.py FOLDER

BART has the weights of MASS: its positions begin two rows later, where MASS has the row of padding and the
first position.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import plmcore as plm
from plmcore import models, safetensors

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from families.cases import GLM, SAME, STACKS, TRANSFO_XL


def main(folder: Path) -> None:
    made = {
        "xl": (TRANSFO_XL, "causal-lm"),
        "glm": (GLM, "causal-lm"),
        "gpt2": (SAME, "causal-lm"),
        "mass": (STACKS | {"model_type": "mass"}, "seq2seq-lm"),
        "bart": (STACKS | {"model_type": "bart"}, "seq2seq-lm"),
    }
    for name, (config, head) in made.items():
        if not (folder / name).exists():
            plm.seed(0)
            plm.from_config(models.config_from_dict(config), head).save(folder / name)
    mass, bart = (
        {n: np.asarray(t) for n, t in safetensors.read(folder / name / "model.safetensors")[0].items()}
        for name in ("mass", "bart")
    )
    for name, table in bart.items():
        same = mass.get(name.replace("layernorm_embedding", "emb_layer_norm"))
        if name.endswith("embed_positions.weight"):
            bart[name] = np.concatenate([table[:1], same])  # rows pad + 1 and 2 are the first positions
        elif same is not None:
            bart[name] = same
    safetensors.write(folder / "bart" / "model.safetensors", bart)
    config = json.loads((folder / "bart" / "config.json").read_text())
    (folder / "bart" / "config.json").write_text(json.dumps(config | {"forced_eos_token_id": None}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
