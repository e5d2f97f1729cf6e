"""What each layer knows: a linear probe on the frozen states of every layer.

The probe is ridge regression onto the classes, solved at once, so that it has no schedule and no seed. Syntax
(parts of speech) shows in lower layers, meaning in higher ones.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from plmcore._core import ArgumentError
from plmcore.data.readers import Record
from plmcore.nn import inference
from plmcore.runtime import draws
from plmcore.tasks import labels
from plmcore.tasks.inference import needed_tokenizer
from plmcore.tasks.rows import Rows, takes_types

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel


CHUNK = 64  # batches of records that are tokenised in one go
CONTROL = 0x636F6E74726F6C  # keeps these draws apart


def probe(
    lm: LanguageModel,
    train: Sequence[Record],
    test: Sequence[Record],
    *,
    ridge: float = 1e-3,
    batch: int = 32,
    control: bool = False,
) -> list[float]:
    """Returns the test accuracy of a linear probe on the embeddings and on every layer.

    Records have text and label (the probe reads the mean of the tokens), or tokens and tags (the first token
    of each word), as from tasks.records.read. With control=True each word, or text, has a random class
    instead, always the same one, and classes are as frequent as in
    `train`: what a probe gets right of that it has learnt by itself, and the difference is what the layer
    knows (Hewitt and Liang 2019). Memory does not grow with the records: states are summed up as they come.
    """
    if not train or not test:
        raise ArgumentError("probe: there must be records to learn from and to test on")
    field = "tags" if "tokens" in train[0] else "label"
    counts = Counter(name for r in train for name in (r["tags"] if field == "tags" else (r["label"],)))
    classes = labels.label_list(train, field)
    if len(classes) < 2:
        raise ArgumentError(f"probe: the records have one class, {', '.join(classes)}")
    numbers = {name: i for i, name in enumerate(classes)}
    shares = np.cumsum([counts[name] for name in classes]) / counts.total()

    def wanted(names: list[str], words: list[str]) -> np.ndarray:
        if not control:
            return np.array([numbers.get(name, -1) for name in names], np.int64)
        places = np.array([zlib.crc32(word.encode()) for word in words], np.uint64)
        return np.searchsorted(shares, draws.uniform(CONTROL, places), side="right")

    sums: list[Sums] = []
    for layers, names, words in layer_states(lm, train, field, batch):
        sums = sums or [Sums(x.mean(0), len(classes)) for x in layers]
        y = wanted(names, words)
        for one, x in zip(sums, layers, strict=True):
            one.add(x, y)
    predict = [one.solve(ridge) for one in sums]
    right, total = np.zeros(len(predict)), 0
    for layers, names, words in layer_states(lm, test, field, batch):
        y = wanted(names, words)
        right += [np.count_nonzero(f(x) == y) for f, x in zip(predict, layers, strict=True)]
        total += len(y)
    return [float(n) / total for n in right]


class Sums:
    """What ridge regression onto classes must know of the states x [N, C] of any number of words: C x C sums.

    They are taken of the differences to `middle`, a vector amid the states, so that large means cost no
    digits.
    """

    def __init__(self, middle: np.ndarray, classes: int):
        C = len(middle)
        self.middle, self.count = middle, np.zeros(classes)
        self.x, self.xx, self.xy = np.zeros(C), np.zeros((C, C)), np.zeros((C, classes))

    def add(self, x: np.ndarray, y: np.ndarray) -> None:
        """x [N, C]; y [N]"""
        d = x - self.middle
        targets = np.eye(len(self.count))[y]
        self.x += d.sum(0)
        self.xx += d.T @ d
        self.xy += d.T @ targets
        self.count += targets.sum(0)

    def solve(self, ridge: float) -> Callable[[np.ndarray], np.ndarray]:
        """States [N, C] -> classes [N]: regression of the standardised states."""
        n = self.count.sum()
        mean, bias = self.x / n, self.count / n
        covariance = self.xx / n - np.outer(mean, mean)
        spread = np.sqrt(np.maximum(np.diag(covariance), 0)) + 1e-8
        with_classes = self.xy / n - np.outer(mean, bias)
        left = covariance / np.outer(spread, spread) + ridge * np.eye(len(spread))
        weights = np.linalg.solve(left, with_classes / spread[:, None])
        middle = self.middle + mean
        return lambda states: np.argmax((states - middle) / spread @ weights + bias, 1)


def layer_states(
    lm: LanguageModel, records: Sequence[Record], field: str, batch: int
) -> Iterator[tuple[list[np.ndarray], list[str], list[str]]]:
    """Batch by batch: of each layer the vectors [N, C] of words or texts; their classes;
    and the words or texts.
    """
    tokenizer = needed_tokenizer(lm, "probe")
    limits = [n for n in (tokenizer.max_length, lm.config.longest) if n]
    words = field == "tags"
    body = getattr(lm.model, "body", lm.model)
    for first in range(0, len(records), CHUNK * batch):
        some = records[first : first + CHUNK * batch]
        rows = Rows(tokenizer, takes_types(lm.model, tokenizer))
        texts = [r["tokens" if words else "text"] for r in some]
        rows.add(
            texts, max_length=min(limits, default=None), words=words, detail=("word_ids", "sequence_ids")
        )
        for start in range(0, len(rows), batch):
            chosen = range(start, min(start + batch, len(rows)))
            with inference():
                inputs = lm.model.tensors(rows.batch(chosen))
                states = body(**inputs, output_hidden_states=True).hidden_states
                layers = [h.numpy().astype(np.float64) for h in states]  # [B, T, C] each
            found: list[list[np.ndarray]] = [[] for _ in layers]
            classes: list[str] = []
            read: list[str] = []
            for r, row in enumerate(chosen):
                at, names, own = _read(rows, row, some[rows.record[row]], field)
                at += rows.start(layers[0].shape[1], len(rows.ids[row]))
                classes += names
                read += own
                for vectors, h in zip(found, layers, strict=True):
                    vectors.append(h[r, at] if words else h[r, at].mean(0, keepdims=True))
            yield [np.concatenate(vectors) for vectors in found], classes, read


def _read(rows: Rows, row: int, record: Record, field: str) -> tuple[np.ndarray, list[str], list[str]]:
    """The tokens that are read, the classes they stand for, and the words or the text."""
    detail = rows.detail[row]
    if field == "label":
        return np.flatnonzero(detail["sequence_ids"] == 0), [record["label"]], [record["text"]]
    numbers = detail["word_ids"]
    first = np.flatnonzero((numbers >= 0) & (np.diff(numbers, prepend=-1) != 0))
    tags, words = ([record[key][i] for i in numbers[first]] for key in ("tags", "tokens"))
    return first, tags, words
