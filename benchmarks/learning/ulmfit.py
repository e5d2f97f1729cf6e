"""ULMFiT on IMDb with 500 labels: a small AWD-LSTM learns from WikiText-2, then from 8,000 reviews without
their labels, then from 500 labelled ones, beside the same classifier from fresh weights.

The score is the accuracy on the 5,000 test reviews.
"""

from __future__ import annotations

import gzip
import pathlib
import random

import plmcore as plm
from plmcore.train import run_directory

from learning.transfer import apart, from_scratch, wikitext

LABELS, REVIEWS, WORDS, LENGTH = 500, 8000, 8000, 250
STEPS = (3000, 5000)  # on WikiText-2, on reviews
LANGUAGE_MODEL = ["data.length=36", "data.batch=20", "train.ar=0.0", "train.tar=0.0", "train.vary=false"]
# SGD, as in the recipe: Adam stays at the frequencies of words for many steps.
PRETRAINING = [
    *LANGUAGE_MODEL,
    f"data.vocab={WORDS}",
    "model.n_layers=2",
    "model.d_embed=100",
    "model.d_hidden=200",
    "model.drop_mult=0.2",
    "train.average=none",
    "optim.lr=20.0",
]
ADAPTING = [*LANGUAGE_MODEL, f"adapt.vocab={WORDS}"]
EPOCHS = 8
FINETUNING = {
    "pre-trained": [],  # the family's own: gradual unfreezing, rates by layer, slanted triangle
    "from scratch": ["adapt.unfreeze_every=none", "optim.layer_decay=1.0", "optim.lr=0.003"],
}


def reviews(data: pathlib.Path, split: str) -> list[tuple[str, str]]:
    """Label and text, in an order of their own."""
    with gzip.open(data / "imdb" / f"{split}.tsv.gz", "rt", encoding="utf-8") as lines:
        cells = [line.rstrip("\n").split("\t") for line in lines]
    found = [("positive" if c[0] == "1" else "negative", apart(c[3].replace("<br />", " "))) for c in cells]
    random.Random(0).shuffle(found)
    return found


def table(path: pathlib.Path, rows: list[tuple[str, str]]) -> pathlib.Path:
    path.write_text("".join(f"{label}\t{text}\n" for label, text in rows))
    return path


def prepare(data: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The language model after both texts, made once."""
    common = dict(seed=0, resume=True, quiet=True)
    wiki, film = folder / "wikitext", folder / "reviews"
    if not (wiki / run_directory.FINAL).exists():
        text = folder / "wikitext-2.txt"
        text.write_text(wikitext("awd-lstm", data))
        plm.pretrain("awd-lstm", text=[text], out=wiki, steps=STEPS[0], changes=PRETRAINING, **common)
    if not (film / run_directory.FINAL).exists():
        text, held = folder / "reviews.txt", folder / "held-out.txt"
        found = [text for _, text in reviews(data, "train")]
        text.write_text("".join(f"{line}\n" for line in found[:REVIEWS]))
        held.write_text("".join(f"{line}\n" for line in found[REVIEWS : REVIEWS + 200]))
        plm.finetune(
            wiki / run_directory.FINAL, "lm", train=text, dev=held, out=film, steps=STEPS[1],
            changes=ADAPTING, **common,
        )  # fmt: skip
    return film / run_directory.FINAL


def run(data: pathlib.Path, folder: pathlib.Path, seed: int) -> dict[str, float]:
    """Test accuracy of both, and the perplexity of reviews."""
    model = prepare(data, folder)
    metrics = run_directory.read_metrics(model.parent / run_directory.METRICS)
    found = {
        "perplexity of reviews": round(
            [m["eval_perplexity"] for m in metrics if "eval_perplexity" in m][-1], 2
        )
    }
    rows = reviews(data, "train")
    chosen = rows[seed * LABELS :][:LABELS]
    train = table(folder / f"train-{seed}.tsv", chosen)
    test = table(folder / "test.tsv", reviews(data, "test"))
    for start, source in (("pre-trained", model), ("from scratch", from_scratch(model, folder, seed))):
        out = folder / f"{start.replace(' ', '-')}-{seed}"
        plm.finetune(
            source, "classification", train=train, test=test, columns=["label", "text"], epochs=EPOCHS,
            seed=seed, out=out, resume=True, quiet=True,
            changes=[f"data.length={LENGTH}", "data.batch=25", "train.keep=1", *FINETUNING[start]],
        )  # fmt: skip
        scores = run_directory.read_metrics(out / run_directory.METRICS)
        found[start] = round([m["test_accuracy"] for m in scores if "test_accuracy" in m][-1], 4)
    return found | {"gain": round(found["pre-trained"] - found["from scratch"], 4)}
