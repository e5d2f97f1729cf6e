"""MASS: fragments of text first, then few pairs, beside a model with fresh weights.

Translation: both languages of Multi30k without their pairing, then 1,000 pairs; BLEU of the first 300 test
sentences. Summaries: the abstracts of SciTLDR, then their one-line summaries; ROUGE-L of the first 200 test
abstracts, beside that of their first sentence.
"""

from __future__ import annotations

import gzip
import json
import pathlib

import plmcore as plm
from plmcore import evaluate
from plmcore.train import run_directory

from learning import transfer, translation

PAIRS, SENTENCES, ABSTRACTS = 1000, 300, 200
STEPS = {"translation": 700, "summaries": 250}
EPOCHS = {"translation": 12, "summaries": 3}
LENGTHS = {"translation": (40, 40), "summaries": (128, 32)}  # of sources and targets
SMALL = ["model.dropout=0.1", "model.attention_dropout=0.0", "model.activation_dropout=0.0"]
LINES = ["data.documents=line", "data.sentences=document", "data.unwrap=false"]
Rows = list[dict[str, str]]


def abstracts(data: pathlib.Path, split: str) -> list[dict]:
    lines = gzip.decompress((data / "scitldr" / f"{split}.jsonl.gz").read_bytes()).decode().splitlines()
    return [json.loads(line) for line in lines]


def pretrained(
    name: str, lines: list[str], folder: pathlib.Path, settings: list[str], steps: int | None = None
) -> pathlib.Path:
    """The model directory after fragments of these lines, made once."""
    out, steps = folder / name, steps or STEPS[name]
    if not (out / run_directory.FINAL).exists():
        text = folder / f"{name}.txt"
        text.write_text("\n".join(lines) + "\n")
        changes = [*SMALL, *LINES, f"schedule.warmup={steps // 10}", *settings]
        plm.pretrain(
            "mass", text=[text], out=out, size="tiny", steps=steps, lr=2e-3, seed=0, changes=changes,
            resume=True, quiet=True,
        )  # fmt: skip
    return out / run_directory.FINAL


def prepare_translation(data: pathlib.Path, folder: pathlib.Path, steps: int | None = None) -> pathlib.Path:
    lines = [line for language in ("de", "en") for line in translation.lines(data, f"train.{language}.gz")]
    settings = ["data.vocab=5000", "data.length=32", "data.batch=64"]
    return pretrained("translation", lines, folder, settings, steps)


def prepare_summaries(data: pathlib.Path, folder: pathlib.Path, steps: int | None = None) -> pathlib.Path:
    lines = [" ".join(record["source"]) for record in abstracts(data, "train")]
    settings = ["data.vocab=5000", "data.length=128", "data.batch=24", "objective.rate=0.15",
                "objective.block=64"]  # fmt: skip
    return pretrained("summaries", lines, folder, settings, steps)


def written(
    name: str, model: pathlib.Path, rows: Rows, sources: list[str], out: pathlib.Path, seed: int
) -> list[str]:
    """What the model writes for the sources after fine-tuning on the rows."""
    source, target = LENGTHS[name]
    changes = [f"data.length={source}", f"task.target_length={target}", "train.keep=1", "data.held_out=0"]
    lm = plm.finetune(
        model, "seq2seq", train=rows, out=out, epochs=EPOCHS[name], batch=32, lr=1e-3, seed=seed,
        changes=changes, quiet=True,
    )  # fmt: skip
    texts: list[str] = []
    for i in range(0, len(sources), 50):
        texts += lm.generate(sources[i : i + 50], num_beams=1, max_new_tokens=target)
    return texts


def both(name: str, model: pathlib.Path, rows: Rows, sources: list[str], folder: pathlib.Path, seed: int):
    """(kind, texts) of the pre-trained model and of a fresh one of its size and tokenizer."""
    scratch = transfer.from_scratch(model, folder, seed)
    for kind, start in (("pre-trained", model), ("from scratch", scratch)):
        yield kind, written(name, start, rows, sources, folder / f"{name}-{kind}-{seed}", seed)


def run_translation(data: pathlib.Path, folder: pathlib.Path, seed: int) -> dict[str, float]:
    """BLEU of both. The pairs are others for each seed."""
    model = prepare_translation(data, folder)
    source, target = (translation.lines(data, f"train.{language}.gz") for language in ("de", "en"))
    first = seed * PAIRS
    rows = [{"source": s, "target": t} for s, t in zip(source[first : first + PAIRS], target[first:])]
    sources, targets = (
        translation.lines(data, f"test_2016_flickr.{language}.gz")[:SENTENCES] for language in ("de", "en")
    )
    found = {
        kind: round(evaluate.compute(["bleu"], texts, targets)["bleu"], 2)
        for kind, texts in both("translation", model, rows, sources, folder, seed)
    }
    return {f"BLEU, {kind}": score for kind, score in found.items()}


def run_summaries(data: pathlib.Path, folder: pathlib.Path, seed: int) -> dict[str, float]:
    """ROUGE-L of both, and of the first sentence."""
    model = prepare_summaries(data, folder)
    rows = [{"source": " ".join(r["source"]), "target": r["target"][0]} for r in abstracts(data, "train")]
    test = abstracts(data, "test")[:ABSTRACTS]
    sources, targets = [" ".join(r["source"]) for r in test], [r["target"] for r in test]
    texts = dict(both("summaries", model, rows, sources, folder, seed)) | {
        "first sentence": [r["source"][0] for r in test]
    }
    return {
        f"ROUGE-L, {kind}": round(100 * evaluate.compute(["rouge"], made, targets)["rougeL"], 2)
        for kind, made in texts.items()
    }
