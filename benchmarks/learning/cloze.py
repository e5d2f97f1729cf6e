"""GLM on film reviews of IMDB, without their labels, then 100 labelled sentences of SST-2: as a cloze, with
one word for each class, and with a linear head on the same body. Scores are accuracies on the test set.
"""

from __future__ import annotations

import gzip
import pathlib

import numpy as np
import plmcore as plm
from plmcore import ops, optim
from plmcore.generate import blank_batch
from plmcore.train import run_directory, schedules

REVIEWS, STEPS = 12_000, 1200
LABELLED, EPOCHS, BATCH = 100, 15, 10
RATES = {"cloze": 1e-3, "linear head": 5e-4}  # chosen, as the words, on the development set with other seeds
TEMPLATE, ANSWERS = "{} , [MASK] !", ("worst", "best")  # of the labels 0 and 1
LENGTH = 64


def reviews(data: pathlib.Path) -> str:
    lines = gzip.decompress((data / "imdb" / "train.tsv.gz").read_bytes()).decode().splitlines()
    texts = (line.rsplit("\t", 1)[-1].replace("<br />", " ") for line in lines[:REVIEWS])
    return "\n\n".join(" ".join(text.lower().split()) for text in texts)


def prepare(data: pathlib.Path, folder: pathlib.Path, steps: int = STEPS) -> pathlib.Path:
    """The model directory after the reviews, made once."""
    out = folder / "reviews"
    if not (out / run_directory.FINAL).exists():
        text = folder / "reviews.txt"
        text.write_text(reviews(data))
        changes = [
            "data.vocab=5000",
            f"data.length={LENGTH}",
            f"model.max_sequence_length={2 * LENGTH}",  # the longest sentences of SST-2 have more tokens
            "data.batch=24",
            "objective.mean=1.5",
            f"schedule.warmup={steps // 10}",
            "model.embedding_dropout_prob=0.0",
            "model.attention_dropout_prob=0.0",
            "model.output_dropout_prob=0.0",
        ]
        plm.pretrain(
            "glm", text=[text], out=out, size="tiny", steps=steps, lr=2e-3, seed=0, changes=changes,
            resume=True, quiet=True,
        )  # fmt: skip
    return out / run_directory.FINAL


def sentences(data: pathlib.Path, split: str) -> list[tuple[str, int]]:
    lines = (data / "sst2" / f"{split}.tsv").read_text().splitlines()
    return [(text, int(label)) for text, label in (line.split("\t") for line in lines)]


def scores(lm, texts: list[str]) -> plm.Tensor:
    """The logits of both answers in the blanks.  [B, 2]"""
    batch = blank_batch(lm, [TEMPLATE.format(text) for text in texts], [ANSWERS[0]] * len(texts), end=False)
    labels = batch.pop("labels")
    rows, _, _ = ops.select_labelled(lm(**batch).logits, plm.Tensor(labels))
    words = [lm.tokenizer.id_of(answer) for answer in ANSWERS]
    return ops.index_select(rows, plm.Tensor(np.array(words)), 1)


def cloze(model: pathlib.Path, rows: list[tuple[str, int]], test: list[tuple[str, int]], seed: int) -> float:
    """Trains the words of the blank against each other."""
    plm.seed(seed)
    lm, rng = plm.load(model).train(), np.random.default_rng(seed)
    steps = EPOCHS * len(rows) // BATCH
    optimizer = optim.AdamW(lm.parameters(), lr=RATES["cloze"], weight_decay=0.01)
    schedule = schedules.linear(steps=steps, warmup=steps // 10)
    for step in range(steps):
        if step % (len(rows) // BATCH) == 0:
            order = rng.permutation(len(rows))
        chosen = [rows[i] for i in order[:BATCH]]
        order = np.roll(order, -BATCH)
        optimizer.zero_grad()
        labels = plm.Tensor(np.array([label for _, label in chosen]))
        ops.cross_entropy(scores(lm, [text for text, _ in chosen]), labels).backward()
        optimizer.lr = RATES["cloze"] * schedule(step)
        optimizer.step()
    lm.eval()
    with plm.no_grad():
        found = [
            scores(lm, [text for text, _ in test[i : i + 64]]).numpy().argmax(1)
            for i in range(0, len(test), 64)
        ]
    return float((np.concatenate(found) == [label for _, label in test]).mean())


def linear_head(
    model: pathlib.Path,
    rows: list[tuple[str, int]],
    test: list[tuple[str, int]],
    out: pathlib.Path,
    seed: int,
) -> float:
    table = lambda rows: [{"text": text, "label": str(label)} for text, label in rows]
    plm.finetune(
        model, "classification", train=table(rows), test=table(test), out=out, epochs=EPOCHS, batch=BATCH,
        lr=RATES["linear head"], seed=seed, changes=[f"data.length={2 * LENGTH}", "train.keep=1"], quiet=True,
    )  # fmt: skip
    metrics = run_directory.read_metrics(out / run_directory.METRICS)
    return [m["test_accuracy"] for m in metrics if "test_accuracy" in m][-1]


def run(data: pathlib.Path, folder: pathlib.Path, seed: int, split: str = "test") -> dict[str, float]:
    """Accuracy of both. The labelled sentences are others for each seed, as many of each class."""
    model = prepare(data, folder)
    rng, pool = np.random.default_rng(seed), sentences(data, "train")
    rows = []
    for label in (0, 1):
        own = [row for row in pool if row[1] == label]
        rows += [own[i] for i in rng.choice(len(own), LABELLED // 2, replace=False)]
    test = sentences(data, split)
    return {
        "cloze": round(cloze(model, rows, test, seed), 4),
        "linear head": round(linear_head(model, rows, test, folder / f"linear-{split}-{seed}", seed), 4),
        "labels": LABELLED,
    }
