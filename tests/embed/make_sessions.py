"""Writes model files of every family and head at tiny sizes, and what the models give: for run_session.cpp.

    python tests/embed/make_sessions.py FOLDER

FOLDER/list.txt names the files. NAME.bin has cases of entry points, of NAME-gen.bin those of generation. All
numbers are int64 or float32; a text is its length and its bytes.
"""

import pathlib
import struct
import sys

import numpy as np
import plmcore as plm
from plmcore import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import every_family
import generating_models
from plmcore.program import export

SIZES = [(1, 1), (2, 5), (3, 10), (5, 2), (4, 7)]
RULES = [dict(), dict(num_beams=3), dict(do_sample=True, seed=5, top_k=7)]
MADE = 7  # tokens
rng = np.random.default_rng(3)


def numbers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def text(value: str) -> bytes:
    return numbers(len(value)) + value.encode()


def array(name: str, a: np.ndarray) -> bytes:
    return text(name) + numbers(a.ndim, *a.shape) + a.tobytes()


def rows(lists: list[list[int]]) -> bytes:
    return numbers(len(lists)) + b"".join(numbers(len(r), *r) for r in lists)


def inputs_of(lm: plm.LanguageModel, B: int, T: int) -> dict[str, np.ndarray]:
    sizes = {"B": B, "T": T, "S": T, "K": 3}
    eos = getattr(lm.config, "eos_token_id", None)
    found = {}
    for name, spec in export.signature(lm.model).items():
        shape = [d if isinstance(d, int) else sizes[str(d)] for d in spec.shape]
        fill = rng.integers(3, 20, shape) if name.endswith("input_ids") else np.zeros(shape, np.int64)
        found[name] = np.ones(shape, np.int64) if name == "attention_mask" else fill
    if eos is not None:
        found["input_ids"][..., -1] = eos
    return found


def write_forward(folder: pathlib.Path, name: str, lm: plm.LanguageModel, least: int = 1) -> None:
    plm.export(lm, folder / f"{name}.plm")
    with open(folder / f"{name}.bin", "wb") as file, nn.inference():
        file.write(numbers(len(SIZES)))
        for B, T in SIZES:
            inputs = inputs_of(lm, B, max(T, least))
            found = every_family.flat(lm(**inputs))
            floats = {k: t.to("float32").numpy() for k, t in found.items() if t.dtype != "int64"}
            for given in (inputs, floats):
                file.write(numbers(len(given)) + b"".join(array(k, a) for k, a in given.items()))


def write_generation(folder: pathlib.Path, name: str, lm: plm.LanguageModel) -> None:
    plm.export(lm, folder / f"{name}.plm")
    prompts = [[4, 9, 5, 7], [11, 3, 8, 6], [8, 8, 6, 12]]
    start = {"decoder_start_token_id": 1} if lm.head == "seq2seq-lm" else {}
    with open(folder / f"{name}.bin", "wb") as file:
        file.write(numbers(len(RULES)))
        for rules in RULES:
            options = dict(max_new_tokens=MADE, eos_token_id=generating_models.EOS, pad_token_id=0, **start)
            whole = lm.generate(prompts, **options, **rules).tolist()
            made = [row[1 if start else 4 :] for row in whole]
            ends = [r.index(2) + 1 if 2 in r else len(r) for r in made]
            beams, seed, top = (rules.get(k, 0) for k in ("num_beams", "seed", "top_k"))
            file.write(numbers(max(beams, 1), int("do_sample" in rules), seed, top, MADE))
            file.write(rows(prompts) + rows([[1]] * len(prompts) if start else []))
            file.write(rows([r[:n] for r, n in zip(made, ends)]))


def main(folder: pathlib.Path) -> None:
    names = []
    for family, head in every_family.HEADS:
        names.append(f"{family}-{head}")
        write_forward(folder, names[-1], every_family.model(family, head), 5 if head == "answer-beams" else 1)
    every_family.model("gpt2", "causal-lm").save(folder / "gpt2")
    plm.quantize(folder / "gpt2", "int8", out=folder / "gpt2-int8")
    stored = {"int8": plm.load(folder / "gpt2-int8"), "bfloat16": plm.load(folder / "gpt2", dtype="bfloat16")}
    for kind, lm in stored.items():
        names += [f"gpt2-{kind}", f"gpt2-{kind}-gen"]
        write_forward(folder, names[-2], lm)
        write_generation(folder, names[-1], lm)
    for family in generating_models.MODELS:
        names.append(f"{family}-gen")
        write_generation(folder, names[-1], generating_models.model(family))
    (folder / "list.txt").write_text("".join(f"{name}\n" for name in names))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
