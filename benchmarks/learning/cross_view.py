"""Does text without labels help? A small CVT tagger learns chunks from 100 sentences of CoNLL-2003, alone and
with 10,000 sentences whose tags it does not see; both from the same GloVe vectors.

The supervised model learns once from as many batches with labels as the other, and once for as many steps.
Scores are F1 of chunks on the development sentences, in percent.
"""

from __future__ import annotations

import gzip
import json
import pathlib

import plmcore as plm
from plmcore.tasks import labels

LABELLED, UNLABELLED = 100, 10_000
STEPS = 1600  # with labels and without by turns
SIZES = dict(d_char=25, char_filters=[[3, 50]], d_uni=128, d_bi=64, d_projection=64)
# A run of so few steps must end its warm-up early, and an average with 0.998 would hold the first ones.
CHANGES = ["schedule.warmup=100", "train.average=0.99", 'task.metrics=["entities"]', "data.length=64"]


def sentences(data: pathlib.Path, split: str) -> list[list[tuple[str, str]]]:
    """Words with the tags of their chunks."""
    text = gzip.decompress((data / "conll2003" / f"eng.{split}.gz").read_bytes()).decode()
    rows = ([line.split() for line in block.splitlines()] for block in text.split("\n\n"))
    found = [[(row[0], row[2]) for row in block if row] for block in rows]
    return [s for s in found if s and s[0][0] != "-DOCSTART-"]


def write_tagged(path: pathlib.Path, found: list[list[tuple[str, str]]]) -> None:
    path.write_text("\n".join("".join(f"{word} {tag}\n" for word, tag in s) for s in found))


def prepare(data: pathlib.Path, folder: pathlib.Path) -> None:
    train = sentences(data, "train")
    text = train[-UNLABELLED:]
    (folder / "text.txt").write_text("".join(" ".join(word for word, _ in s) + "\n" for s in text))
    write_tagged(folder / "dev.txt", sentences(data, "testa"))


def arms(folder: pathlib.Path) -> dict[str, tuple[pathlib.Path | None, int]]:
    """By name: text without labels, and steps."""
    return {
        "supervised, half the steps": (None, STEPS // 2),
        "supervised": (None, STEPS),
        "cross-view": (folder / "text.txt", STEPS),
    }


def gains(found: dict[str, float]) -> bool:
    """Whether text without labels helps, whatever the supervised model's steps."""
    return found["cross-view"] > max(found["supervised"], found["supervised, half the steps"])


def run(data: pathlib.Path, folder: pathlib.Path, seed: int) -> dict[str, float]:
    """F1 of each; each seed has other labelled sentences and weights."""
    if not (folder / "text.txt").exists():
        prepare(data, folder)
    train = sentences(data, "train")
    tags = sorted(
        {tag for s in (*train, *sentences(data, "testa")) for tag in labels.bioes([t for _, t in s])}
    )
    labelled = train[seed * LABELLED :][:LABELLED]
    write_tagged(folder / f"train-{seed}.txt", labelled)
    model = folder / f"model-{seed}"
    if not model.exists():
        vectors = data / "glove-6b-50d-top20k" / "glove.6B.50d.top20k.txt"
        plm.new("cvt", out=model, text=folder / "text.txt", vectors=vectors, seed=seed, **SIZES)
    found = {}
    for name, (unlabelled, steps) in arms(folder).items():
        out = folder / f"{name.replace(' ', '-').replace(',', '')}-{seed}"
        plm.finetune(
            model,
            "tagging",
            train=folder / f"train-{seed}.txt",
            test=folder / "dev.txt",
            unlabelled=unlabelled,
            labels=tags,
            out=out,
            steps=steps,
            seed=seed,
            changes=[*CHANGES, f"train.save_every={steps // 4}"],
            resume=True,
            quiet=True,
        )
        scores = json.loads((out / "scores.json").read_text())["test"]
        found[name] = round(100 * scores["f1"], 2)
    return found
