"""Writes programs/NAME.plm, exported from the golden models, and quantized/gpt2, with what they give.

Run once per version that users have; the files are kept so that later versions prove that they read them:
    python tests/golden/make_programs.py
"""

import pathlib
import shutil

import numpy as np
import plmcore as plm

here = pathlib.Path(__file__).parent
IDS = np.array([[5, 9, 2, 14, 3], [7, 1, 12, 0, 0]])
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
INPUTS = {
    "gpt2": dict(input_ids=IDS, attention_mask=MASK),
    "bert": dict(input_ids=IDS, attention_mask=MASK, token_type_ids=1 - MASK),
    "t5": dict(input_ids=IDS, attention_mask=MASK, decoder_input_ids=IDS[:, :3]),
}


def outputs(given) -> dict[str, np.ndarray]:
    return {f"out.{name}": y.numpy() for name, y in given.items() if hasattr(y, "numpy")}


def main() -> None:
    for name, inputs in INPUTS.items():
        path = here / "programs" / f"{name}.plm"
        plm.export(plm.load(here / "models" / name), path)
        np.savez_compressed(path.with_suffix(".npz"), **inputs, **outputs(plm.load_program(path)(**inputs)))
    folder = here / "quantized" / "gpt2"
    shutil.rmtree(folder, ignore_errors=True)
    plm.quantize(here / "models" / "gpt2", "int8", out=folder)
    logits = plm.load(folder)(**INPUTS["gpt2"]).logits.numpy()
    np.savez_compressed(folder / "outputs.npz", **INPUTS["gpt2"], logits=logits)


if __name__ == "__main__":
    main()
