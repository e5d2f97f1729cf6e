"""Words in context: both directions of a small biLM learn equally well, and its layers, and those of a
translation model's encoder, help a task that has 500 labelled sentences.

The biLM of the features is trained on WikiText-2, whose words have capitals; CoVe's translation model on the
captions of Multi30k, over fixed vectors of GloVe. Both arms of a comparison have the vectors.
"""

from __future__ import annotations

import gzip
import pathlib

import numpy as np
import plmcore as plm
from plmcore.language_model.importing import convert_checkpoint
from plmcore.train import run_directory

VECTORS = pathlib.Path("glove-6b-50d-top20k") / "glove.6B.50d.top20k.txt"
LABELLED, EPOCHS, CELLS = 500, 15, 64
BATCH, LENGTH = 32, 20
STEPS = {"penn": 1460, "wikitext": 1500, "translation": 1500}  # the first is one epoch
WIDTH, LINES, WORDS = 64, 20_000, 6000  # of the translation model: cells of a direction, captions, words
ARMS = ("with", "without")


def pretrained(text: pathlib.Path, out: pathlib.Path, steps: int, seed: int) -> pathlib.Path:
    """A biLM of 256 cells and a projection of 32."""
    changes = [f"data.batch={BATCH}", "data.vocab=10000", "data.held_out=0.073", "train.evaluate_batches=100"]
    plm.pretrain(
        "elmo", text=[text], out=out, steps=steps, seed=seed, changes=changes, resume=True, quiet=True
    )
    return out


def directions(data: pathlib.Path, folder: pathlib.Path, seed: int) -> dict[str, float]:
    """Perplexities of the Penn Treebank's validation text, which is the last 7.3 % of the file."""
    text = folder / "ptb.txt"
    if not text.exists():
        train = gzip.decompress((data / "ptb" / "ptb.train.txt.gz").read_bytes())
        text.write_bytes(train + (data / "ptb" / "ptb.valid.txt").read_bytes())
    out = pretrained(text, folder / f"run-{seed}", STEPS["penn"], seed)
    last = [m for m in run_directory.read_metrics(out / run_directory.METRICS) if "eval_loss" in m][-1]
    return {way: round(last[f"eval_{way}_perplexity"], 2) for way in ("forward", "backward")}


# ---- ELMo ----


def entities(data: pathlib.Path, file: str, most: int) -> str:
    """Words and tags of the first sentences."""
    with gzip.open(data / "conll2003" / file, "rt") as f:
        blocks = [b.splitlines() for b in f.read().split("\n\n") if b.strip() and "DOCSTART" not in b]
    tagged = (
        "\n".join(" ".join(line.split()[i] for i in (0, 3)) for line in block) for block in blocks[:most]
    )
    return "\n\n".join(tagged) + "\n"


def wikipedia(data: pathlib.Path, folder: pathlib.Path) -> None:
    """The biLM that all seeds share."""
    source = next(p for p in sorted((data / "wikitext-2").iterdir()) if "train" in p.name)
    raw = source.read_bytes()
    raw = gzip.decompress(raw) if source.suffix == ".gz" else raw
    lines = [line.strip() for line in raw.decode().splitlines()]
    text = folder / "wikitext.txt"
    text.write_text(
        "".join(s + " .\n" for line in lines if line and "=" not in line[:1] for s in line.split(" . "))
    )
    pretrained(text, folder / "elmo", STEPS["wikitext"], 0)


def elmo(data: pathlib.Path, folder: pathlib.Path, seed: int) -> dict[str, float]:
    """Entities of CoNLL-2003, token F1 by words that are entities, with and without ELMo beside GloVe."""
    for file, name, most in (("eng.train.gz", "train.txt", 2000), ("eng.testa.gz", "test.txt", 600)):
        if not (folder / name).exists():
            (folder / name).write_text(entities(data, file, most))
    blocks = (folder / "train.txt").read_text().strip().split("\n\n")
    chosen = np.random.default_rng(seed).permutation(len(blocks))[:LABELLED]
    train = folder / f"train-{seed}.txt"
    train.write_text("\n\n".join(blocks[i] for i in chosen) + "\n")
    source = folder / "elmo" / "final"
    return {
        arm: tuned(
            source, "tagging", train, folder / "test.txt", folder / f"{arm}-{seed}", seed, layers, data
        )
        for arm, layers in zip(ARMS, ("mix", "vectors"))
    }


def tuned(
    source: pathlib.Path,
    task: str,
    train: pathlib.Path,
    test: pathlib.Path,
    out: pathlib.Path,
    seed: int,
    layers: str,
    data: pathlib.Path,
) -> float:
    """The score of a task model over the vectors of GloVe and these layers."""
    metric = "token_accuracy" if task == "tagging" else "accuracy"
    changes = [f"adapt.layers={layers}", f"adapt.vectors={data / VECTORS}", f"adapt.encoder={CELLS}",
               "adapt.dropout=0.3", "optim.lr=2e-3", "data.length=64"]  # fmt: skip
    plm.finetune(
        source, task, train=train, test=test, out=out, seed=seed, epochs=EPOCHS, changes=changes, resume=True,
        quiet=True, **({} if task == "tagging" else {"columns": ["text", "label"]})
    )  # fmt: skip
    found = run_directory.read_metrics(out / run_directory.METRICS)
    return round([m[f"test_{metric}"] for m in found if f"test_{metric}" in m][-1], 4)


# ---- CoVe ----


def words_of(lines: list[str]) -> list[list[str]]:
    return [line.lower().replace(",", " ,").replace(".", " .").split() for line in lines]


def captions(data: pathlib.Path, language: str) -> list[list[str]]:
    found = sorted(p for p in (data / "multi30k").rglob(f"train*.{language}*") if p.is_file())[0]
    raw = gzip.decompress(found.read_bytes()) if found.suffix == ".gz" else found.read_bytes()
    return words_of(raw.decode().splitlines()[:LINES])


def numbered(rows: list[list[str]], words: list[str]) -> list[list[int]]:
    """Ids from 4 on: padding is 1, the end 2, the unknown 3."""
    place = {word: i + 4 for i, word in enumerate(words)}
    return [[place.get(word, 3) for word in row] + [2] for row in rows]


def padded(rows: list[list[int]], fill: int) -> np.ndarray:
    out = np.full((len(rows), max(map(len, rows))), fill, np.int64)
    for row, ids in zip(out, rows):
        row[: len(ids)] = ids
    return out


class Pairs:
    """Batches of captions and their translations."""

    def __init__(self, sources: list[list[int]], targets: list[list[int]], seed: int):
        self.sources, self.targets = sources, targets
        self.seed = seed

    def __getitem__(self, step: int) -> dict[str, np.ndarray]:
        chosen = np.random.default_rng([self.seed, step]).integers(0, len(self.sources), BATCH)
        source = padded([self.sources[i] for i in chosen], 1)
        return {
            "input_ids": source,
            "attention_mask": (source != 1).astype(np.int64),
            "labels": padded([self.targets[i] for i in chosen], -100),
        }


def translator(data: pathlib.Path, folder: pathlib.Path) -> None:
    """English to German over GloVe's vectors, which stay; its encoder is CoVe."""
    vectors = plm.load_vectors(data / VECTORS)
    english, german = captions(data, "en"), captions(data, "de")
    counts: dict[str, int] = {}
    for word in (word for row in german for word in row):
        counts[word] = counts.get(word, 0) + 1
    target_words = sorted(counts, key=lambda w: (-counts[w], w))[:WORDS]
    D = vectors.matrix.shape[1]
    plm.seed(0)
    lm = plm.from_config(
        dict(model_type="rnn-seq2seq", vocab_size=len(vectors.words) + 4, target_vocab_size=WORDS + 4,
             d_embed=D, d_hidden=WIDTH, bidirectional=True, bridge="concat", attention="general",
             dropout=0.2),
        "seq2seq-lm",
    )  # fmt: skip
    table = next(p for name, p in lm.model.named_parameters() if name.endswith("encoder.embedding.weight"))
    plm._core.assign(table, plm.Tensor(np.concatenate([np.zeros((4, D), np.float32), vectors.matrix])))
    table.requires_grad = False
    batches = Pairs(numbered(english, vectors.words), numbered(german, target_words), 0)
    trainer = plm.train.Trainer(
        lm.model, batches, plm.optim.Adam([p for p in lm.parameters() if p.requires_grad], lr=2e-3),
        steps=STEPS["translation"], clip_norm=5.0,
    )  # fmt: skip
    trainer.run()
    lm.save(folder / "translator")
    convert_checkpoint(folder / "translator", folder / "cove", "cove")


def cove(data: pathlib.Path, folder: pathlib.Path, seed: int) -> dict[str, float]:
    """Sentiment of SST-2, accuracy of the test sentences, with and without CoVe beside GloVe."""
    lines = (data / "sst2" / "train.tsv").read_text().splitlines()
    chosen = np.random.default_rng(seed).permutation(len(lines))[:LABELLED]
    train, test = folder / f"train-{seed}.tsv", folder / "test.tsv"
    train.write_text("\n".join(lines[i] for i in chosen) + "\n")
    test.write_text((data / "sst2" / "test.tsv").read_text())
    return {
        arm: tuned(
            folder / "cove", "classification", train, test, folder / f"{arm}-{seed}", seed, layers, data
        )
        for arm, layers in zip(ARMS, ("last", "vectors"))
    }
