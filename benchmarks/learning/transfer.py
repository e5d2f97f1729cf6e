"""Does pre-training help? A small GPT-2 and a small BERT learn from WikiText-2, then from few labelled examples, beside models that begin with these.

Small tasks on purpose: SST-2's 872 development sentences, 1,000 questions of TREC, SNLI's 10,000 development pairs; scores are those of the test sets.
"""

from __future__ import annotations

import gzip
import pathlib
import zipfile
from dataclasses import dataclass

import plmcore as plm
from plmcore import models, tokenizers
from plmcore.train import run_directory

QUESTIONS = 1000


@dataclass(frozen=True)
class Task:
    kind: str
    columns: tuple[str, ...]
    epochs: int


TASKS = {
    "SST-2": Task("classification", ("text", "label"), 5),
    "TREC": Task("classification", ("label", "text"), 8),
    "SNLI": Task("pair", ("label", "text", "pair"), 2),
}
STEPS, LENGTH, BATCH = 3000, 64, 32
# The tiny size, 4 layers of width 128, with twice its rate. So narrow a BERT with fresh weights of the published spread, 0.02, and dropout
# is still at the frequencies of words after 1,000 steps.
PRETRAINING = {
    "gpt2": ["optim.lr=0.002"],
    "bert": [
        "optim.lr=0.002", "optim.kind=adamw", "optim.betas=[0.9,0.98]", "schedule.warmup=150", "model.initializer_range=0.05",
        "model.hidden_dropout_prob=0.0", "model.attention_probs_dropout_prob=0.0",
    ],
}  # fmt: skip


def files(name: str, data: pathlib.Path, folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Tables to learn from and to be tested on."""
    if name != "TREC":
        return data / name.replace("-", "").lower() / "dev.tsv", data / name.replace("-", "").lower() / "test.tsv"
    tables = []
    with zipfile.ZipFile(data / "nltk-corpora" / "qc.zip") as archive:
        for split, most in (("train", QUESTIONS), ("test", None)):
            lines = archive.read(f"qc/{split}.txt").decode("latin-1").splitlines()[:most]
            table = folder / f"trec-{split}.tsv"
            rows = (line.split(" ", 1) for line in lines)  # "DESC:manner How did ..."
            table.write_text("".join(f"{label.partition(':')[0]}\t{text}\n" for label, text in rows))
            tables.append(table)
    return tables[0], tables[1]


def pretrained(family: str, data: pathlib.Path, folder: pathlib.Path, steps: int = STEPS) -> pathlib.Path:
    """The model directory, made once."""
    out = folder / f"{family}-wikitext"
    if not (out / run_directory.FINAL).exists():
        text = folder / "wikitext-2.txt"
        text.write_bytes(gzip.decompress((data / "wikitext-2" / "train.recovered.txt.gz").read_bytes()))
        changes = [
            "data.vocab=4096",
            f"data.length={LENGTH}",
            f"data.batch={BATCH}",
            f"train.save_every={steps}",
            *PRETRAINING[family],
        ]
        plm.pretrain(
            family, text=[text], out=out, size="tiny", steps=steps, seed=0, changes=changes, resume=True, quiet=True
        )
    return out / run_directory.FINAL


def from_scratch(model: pathlib.Path, folder: pathlib.Path, seed: int) -> pathlib.Path:
    """The same model and tokenizer with fresh weights."""
    out = folder / f"scratch-{model.parent.name}-{seed}"
    plm.seed(seed)
    lm = plm.from_config(model, models.head_name(plm.load(model).model))
    lm.save(out)
    tokenizers.load_tokenizer(model).save(out)
    return out


def run(family: str, data: pathlib.Path, folder: pathlib.Path, seed: int) -> dict[str, float]:
    """Test accuracy of both, by task, and the loss of pre-training."""
    model = pretrained(family, data, folder)
    metrics = run_directory.read_metrics(model.parent / run_directory.METRICS)
    found = {"pre-training loss": round([m["eval_loss"] for m in metrics if "eval_loss" in m][-1], 4)}
    for name, task in TASKS.items():
        train, test = files(name, data, folder)
        for start, source in (("pre-trained", model), ("from scratch", from_scratch(model, folder, seed))):
            out = folder / f"{family}-{name}-{start}-{seed}".replace(" ", "-")
            plm.finetune(
                source, task.kind, train=train, test=test, columns=task.columns, epochs=task.epochs, seed=seed, out=out,
                changes=[f"data.length={LENGTH}", "train.keep=1"], resume=True, quiet=True,
            )  # fmt: skip
            scores = run_directory.read_metrics(out / run_directory.METRICS)
            found[f"{name}, {start}"] = round([m["test_accuracy"] for m in scores if "test_accuracy" in m][-1], 4)
    return found
