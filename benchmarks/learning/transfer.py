"""Does pre-training help? A small GPT-2 and a small BERT learn from WikiText-2, then from few labelled
examples, beside models that begin with these.

Small tasks on purpose: SST-2's 872 development sentences, 1,000 questions of TREC, SNLI's 10,000 development
pairs; scores are those of the test sets.
"""

from __future__ import annotations

import gzip
import pathlib
import re
import zipfile
from collections.abc import Iterator
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
    "SST-2": Task("classification", ("label", "text"), 5),
    "TREC": Task("classification", ("label", "text"), 8),
    "SNLI": Task("pair", ("label", "text", "pair"), 1),
}
LENGTH, BATCH = 64, 32
STEPS = {"gpt2": (1500, 500), "bert": (4500, 500)}  # on WikiText-2, on reviews
# The tiny size, 4 layers of width 128, with twice its rate. So narrow a BERT with fresh weights of the
# published spread, 0.02, and dropout is still at the frequencies of words after 1,000 steps. It learns from
# masked tokens alone: of twice as many, in three times the steps.
PRETRAINING = {
    "gpt2": ["optim.lr=0.002"],
    "bert": [
        "optim.lr=0.002",
        "optim.kind=adamw",
        "optim.betas=[0.9,0.98]",
        "schedule.warmup=150",
        "model.initializer_range=0.05",
        "model.hidden_dropout_prob=0.0",
        "model.attention_probs_dropout_prob=0.0",
        "objective.rate=0.3",
        "objective.most=20",
    ],
}


# Each chosen by cross-validation within SST-2's 872 sentences. GPT-2's pre-trained embeddings are four times
# as wide as fresh ones, and need larger steps to change as much; with these some fresh models learn nothing.
FINETUNING: dict[str, dict[str, list[str]]] = {
    "gpt2": {
        "pre-trained": ["adapt.pooling=mean", "optim.lr=0.0015"],
        "from scratch": ["adapt.pooling=mean"],
    },
    "bert": {"pre-trained": ["adapt.pooling=mean", "optim.lr=0.001"], "from scratch": ["optim.lr=0.001"]},
}


def apart(text: str) -> str:
    """As WikiText-2 and SST-2 have it: small letters, marks and the ends of contractions between spaces."""
    for pattern, new in ((r"([.,;:!?()\"])", r" \1 "), (r"(?<=\w)(n't|'(?:s|re|ve|ll|m|d))\b", r" \1")):
        text = re.sub(pattern, new, text.lower())
    return " ".join(text.split())


def written(family: str, text: str) -> str:
    """BERT's tokenizer sets words apart and makes them small itself."""
    return text if family == "bert" else apart(text)


def files(name: str, family: str, data: pathlib.Path, folder: pathlib.Path) -> list[pathlib.Path]:
    """Tables to learn from and to be tested on."""
    tables = []
    for split in ("train", "test"):
        table = folder / f"{name}-{split}.tsv"
        rows = (
            "\t".join([label, *(written(family, text) for text in texts)])
            for label, *texts in records(name, split, data)
        )
        table.write_text("".join(f"{row}\n" for row in rows))
        tables.append(table)
    return tables


def records(name: str, split: str, data: pathlib.Path) -> Iterator[list[str]]:
    """Label and texts."""
    if name == "TREC":
        with zipfile.ZipFile(data / "nltk-corpora" / "qc.zip") as archive:
            lines = archive.read(f"qc/{split}.txt").decode("latin-1").splitlines()
        for line in lines[: QUESTIONS if split == "train" else None]:
            label, text = line.split(" ", 1)  # "DESC:manner How did ..."
            yield [label.partition(":")[0], text]
        return
    table = data / name.replace("-", "").lower() / f"{'dev' if split == 'train' else split}.tsv"
    for line in table.read_text().splitlines():
        cells = line.split("\t")
        yield cells if name == "SNLI" else cells[::-1]


def wikitext(family: str, data: pathlib.Path) -> str:
    text = gzip.decompress((data / "wikitext-2" / "train.recovered.txt.gz").read_bytes()).decode()
    return text if family == "bert" else text.lower()


def reviews(family: str, data: pathlib.Path) -> str:
    """Film reviews of NLTK without their labels, a sentence to a line, without those that SST-2 tests.

    To BERT capitals show where sentences begin.
    """
    tested = {_letters(text) for _, text in records("SST-2", "test", data)}
    documents = []
    with zipfile.ZipFile(data / "nltk-corpora" / "movie_reviews.zip") as archive:
        for name in sorted(n for n in archive.namelist() if n.endswith(".txt")):
            lines = (line.strip() for line in archive.read(name).decode("latin-1").splitlines())
            kept = [
                written(family, line.capitalize()) for line in lines if line and _letters(line) not in tested
            ]
            documents.append("".join(f"{line}\n" for line in kept))
    return "\n".join(documents)


def _letters(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def pretrained(family: str, data: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The model directory after WikiText-2, made once."""
    out, steps = folder / f"{family}-wikitext", STEPS[family][0]
    if not (out / run_directory.FINAL).exists():
        text = folder / "wikitext-2.txt"
        text.write_text(wikitext(family, data))
        sizes = [
            "data.vocab=4096",
            f"data.length={LENGTH}",
            f"data.batch={BATCH}",
            f"train.save_every={steps}",
        ]
        changes = [*sizes, *PRETRAINING[family]]
        plm.pretrain(
            family,
            text=[text],
            out=out,
            size="tiny",
            steps=steps,
            seed=0,
            changes=changes,
            resume=True,
            quiet=True,
        )
    return out / run_directory.FINAL


def adapted(model: pathlib.Path, family: str, data: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The model directory after reviews also, made once: the same objective on text of the kind that SST-2
    has.
    """
    out, steps = folder / f"{family}-reviews", STEPS[family][1]
    if not (out / run_directory.FINAL).exists():
        text = folder / "reviews.txt"
        text.write_text(reviews(family, data))
        changes = [
            f"data.length={LENGTH}",
            f"data.batch={BATCH}",
            f"train.save_every={steps}",
            "optim.lr=0.001",
        ]
        plm.finetune(
            model, "lm", train=text, out=out, steps=steps, seed=0, changes=changes, resume=True, quiet=True
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


def prepare(family: str, data: pathlib.Path, folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """The pre-trained model for each task."""
    model = pretrained(family, data, folder)
    return dict.fromkeys(TASKS, model) | {"SST-2": adapted(model, family, data, folder)}


def run(family: str, data: pathlib.Path, folder: pathlib.Path, seed: int) -> dict[str, float]:
    """Test accuracy of both, by task, and the loss of pre-training."""
    models_of = prepare(family, data, folder)
    metrics = run_directory.read_metrics(models_of["TREC"].parent / run_directory.METRICS)
    found = {"pre-training loss": round([m["eval_loss"] for m in metrics if "eval_loss" in m][-1], 4)}
    for name, task in TASKS.items():
        train, test = files(name, family, data, folder)
        scratch = from_scratch(models_of[name], folder, seed)
        for start, source in (("pre-trained", models_of[name]), ("from scratch", scratch)):
            out = folder / f"{family}-{name}-{start}-{seed}".replace(" ", "-")
            plm.finetune(
                source,
                task.kind,
                train=train,
                test=test,
                columns=task.columns,
                epochs=task.epochs,
                seed=seed,
                out=out,
                changes=[f"data.length={LENGTH}", "train.keep=1", *FINETUNING[family][start]],
                resume=True,
                quiet=True,
            )
            scores = run_directory.read_metrics(out / run_directory.METRICS)
            found[f"{name}, {start}"] = round(
                [m["test_accuracy"] for m in scores if "test_accuracy" in m][-1], 4
            )
    return found
