"""What each layer knows: a linear probe on the frozen states of every layer.

The probe is ridge regression onto the classes, solved at once, so that it has no schedule and no seed. Syntax (parts of speech) shows in lower
layers, meaning in higher ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from plmcore._core import ArgumentError, Tensor
from plmcore.data.readers import Record
from plmcore.nn import inference
from plmcore.tasks import labels
from plmcore.tasks.inference import needed_tokenizer
from plmcore.tasks.rows import Rows, takes_types

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel


def probe(
    lm: LanguageModel, train: Sequence[Record], test: Sequence[Record], *, ridge: float = 1e-3, batch: int = 32
) -> list[float]:
    """Returns the test accuracy of a linear probe on the embeddings and on every layer.

    Records have text and label (the probe reads the mean of the tokens), or tokens and tags (the first token of each word), as from
    tasks.records.read.
    """
    if not train or not test:
        raise ArgumentError("probe: there must be records to learn from and to test on")
    field = "tags" if "tokens" in train[0] else "label"
    classes = labels.label_list(train, field)
    if len(classes) < 2:
        raise ArgumentError(f"probe: the records have one class, {', '.join(classes)}")
    numbers = {name: i for i, name in enumerate(classes)}
    (x, y), (x_test, y_test) = (layer_states(lm, records, field, batch) for records in (train, test))
    wanted = np.array([numbers[c] for c in y])
    right = np.array([numbers.get(c, -1) for c in y_test])
    return [float((solve(a, wanted, len(classes), ridge)(b) == right).mean()) for a, b in zip(x, x_test, strict=True)]


def solve(x: np.ndarray, y: np.ndarray, classes: int, ridge: float):
    """states -> classes.  x [N, C]; y [N]"""
    mean, spread = x.mean(0), x.std(0) + 1e-8
    z = (x - mean) / spread
    targets = np.eye(classes)[y]
    bias = targets.mean(0)
    weights = np.linalg.solve(z.T @ z + ridge * len(z) * np.eye(z.shape[1]), z.T @ (targets - bias))
    return lambda states: ((states - mean) / spread @ weights + bias).argmax(1)


def layer_states(
    lm: LanguageModel, records: Sequence[Record], field: str, batch: int
) -> tuple[list[np.ndarray], list[str]]:
    """Of each layer the vectors [N, C] of words or texts, and their classes."""
    tokenizer = needed_tokenizer(lm, "probe")
    rows = Rows(tokenizer, takes_types(lm.model, tokenizer))
    limits = [n for n in (tokenizer.max_length, lm.config.longest) if n]
    words = field == "tags"
    texts = [r["tokens" if words else "text"] for r in records]
    rows.add(texts, max_length=min(limits, default=None), words=words, detail=("word_ids", "sequence_ids"))
    body = getattr(lm.model, "body", lm.model)
    found: list[list[np.ndarray]] = []
    classes: list[str] = []
    with inference():
        for start in range(0, len(rows), batch):
            chosen = range(start, min(start + batch, len(rows)))
            inputs = {name: Tensor(a) for name, a in rows.batch(chosen).items()}
            states = body(**inputs, output_hidden_states=True).hidden_states
            layers = [h.numpy().astype(np.float64) for h in states]  # [B, T, C] each
            found = found or [[] for _ in layers]
            for r, row in enumerate(chosen):
                at, names = _read(rows, row, records[rows.record[row]], field)
                at += rows.start(layers[0].shape[1], len(rows.ids[row]))
                classes += names
                for vectors, h in zip(found, layers, strict=True):
                    vectors.append(h[r, at] if words else h[r, at].mean(0, keepdims=True))
    return [np.concatenate(vectors) for vectors in found], classes


def _read(rows: Rows, row: int, record: Record, field: str) -> tuple[np.ndarray, list[str]]:
    """The tokens that are read, and the classes they stand for."""
    detail = rows.detail[row]
    if field == "label":
        return np.flatnonzero(detail["sequence_ids"] == 0), [record["label"]]
    numbers = detail["word_ids"]
    first = np.flatnonzero((numbers >= 0) & (np.diff(numbers, prepend=-1) != 0))
    return first, [record["tags"][i] for i in numbers[first]]
