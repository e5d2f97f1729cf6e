"""Kim's convolutional network on the sentences of SST-2, with random embeddings and with GloVe's, which learn
along or stay as they are.
"""

from __future__ import annotations

import pathlib

import plmcore as plm
from plmcore.train import run_directory

FILTERS = [[3, 100], [4, 100], [5, 100]]
EPOCHS = 10
VECTORS = pathlib.Path("glove-6b-50d-top20k") / "glove.6B.50d.top20k.txt"
STARTS = {"random": False, "GloVe": True, "GloVe, static": True}  # whether it has vectors


def table(data: pathlib.Path, folder: pathlib.Path, split: str) -> pathlib.Path:
    """The sentences with their labels, which come last there."""
    made = folder / f"{split}.tsv"
    rows = (line.rsplit("\t", 1) for line in (data / "sst2" / f"{split}.tsv").read_text().splitlines())
    made.write_text("label\ttext\n" + "".join(f"{label}\t{text}\n" for text, label in rows))
    return made


def run(data: pathlib.Path, folder: pathlib.Path, seed: int, epochs: int = EPOCHS) -> dict[str, float]:
    """Test accuracy of each start; the epoch is the best of the development sentences."""
    files = {split: table(data, folder, split) for split in ("train", "dev", "test")}
    found = {}
    for name, has_vectors in STARTS.items():
        start = folder / f"{name}-{seed}".replace(", ", "-")
        if not start.exists():
            given = dict(vectors=data / VECTORS) if has_vectors else dict(d_embed=50)
            words = [files["train"], files["dev"], files["test"]]  # whatever has a vector keeps it
            plm.new(
                "cnn", out=start, text=words, seed=seed, filters=FILTERS, static="static" in name, **given
            )
        out = folder / f"run-{start.name}"
        plm.finetune(
            start,
            "classification",
            train=files["train"],
            dev=files["dev"],
            test=files["test"],
            epochs=epochs,
            batch=50,
            seed=seed,
            out=out,
            changes=["train.result=best", "train.keep=1"],
            resume=True,
            quiet=True,
        )
        scores = run_directory.read_metrics(out / run_directory.METRICS)
        found[name] = round([m["test_accuracy"] for m in scores if "test_accuracy" in m][-1], 4)
    return found
