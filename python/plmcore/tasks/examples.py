"""Records as examples: batches for the training loop, and from the model's outputs predictions and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plmcore import criteria, evaluate, nn
from plmcore._core import ArgumentError
from plmcore.data.readers import Record
from plmcore.models import labels as kinds
from plmcore.models.outputs import Output
from plmcore.objectives.objective import Objective
from plmcore.objectives.rng import Rng
from plmcore.tasks.rows import Rows, takes_types
from plmcore.tokenizers import Tokenizer


class Examples(Objective):
    """An example is a row, or several rows of one record; `targets` has what is to be predicted, None where
    it is not known.
    """

    head: str
    targets: Sequence[Any]
    cut: int  # texts with more tokens than there is room for
    squares = False  # whether the loss is one of numbers
    generates = False  # whether predictions are texts that the model writes

    def __init__(self, tokenizer: Tokenizer, model: nn.Module, length: int, settings: Mapping[str, Any]):
        self.tokenizer, self.model, self.length, self.settings = tokenizer, model, length, settings
        self.rows = Rows(tokenizer, takes_types(model, tokenizer))

    def examples(self, epoch: int) -> int:
        return len(self.rows)

    def lengths(self, epoch: int) -> np.ndarray | None:
        return self.rows.lengths

    @property
    def known(self) -> bool:
        """Whether every record has what is to be predicted."""
        return all(t is not None for t in self.targets)

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        return self.rows.batch(examples) | ({"labels": self.labels(examples)} if self.known else {})

    def labels(self, examples: np.ndarray) -> np.ndarray:  # type: ignore[override]
        return np.array([self.targets[i] for i in examples], np.int64)

    def criterion(self, model: nn.Module) -> criteria.Labelled:
        return criteria.Labelled(squares=self.squares)

    def collect(self, out: Output, n: int) -> list[Any]:
        """What predictions need of the outputs for n examples, one by one."""
        return list(out.logits.numpy().astype(np.float64))

    def predictions(self, collected: Sequence[Any]) -> list[Record]:
        """One object for each record, as written to the predictions file."""
        raise NotImplementedError

    def scores(self, predictions: Sequence[Record]) -> dict[str, float]:
        raise NotImplementedError

    def right(self) -> list[Record]:
        """The predictions of a model that is always right."""
        raise NotImplementedError

    def of_loss(self, loss: float) -> dict[str, float]:
        """What is told of the mean loss."""
        return {"loss": loss}

    def count_cut(self, texts: Sequence[Sequence[str]]) -> int:
        """How many of the rows that fill the length had more tokens. texts: of each row, one or two."""
        full = [i for i, ids in enumerate(self.rows.ids) if len(ids) >= self.length]
        added = self.tokenizer.format.added(bool(texts) and len(texts[0]) > 1)
        sizes = [sum(map(len, self.tokenizer.encode_ids(list(texts[i])))) for i in full]
        return sum(size + added > self.length for size in sizes)


class Classification(Examples):
    """One class of each text, or pair of texts."""

    head = "sequence-classification"

    def __init__(
        self, records: Sequence[Record], targets: Sequence[int | None], names: Sequence[str], *common: Any
    ):
        super().__init__(*common)
        self.targets, self.names = targets, names
        texts = [r["text"] for r in records]
        pairs: Any = [r["pair"] for r in records] if "pair" in records[0] else None
        self.both = bool(self.settings["both_orders"] and pairs)
        if self.both:  # rows 2 i and 2 i + 1 are one example
            texts, pairs = (
                [t for ab in zip(*order) for t in ab] for order in ((texts, pairs), (pairs, texts))
            )
        self.rows.add(texts, pairs, max_length=self.length)
        self.cut = self.count_cut(list(zip(texts, pairs)) if pairs else [[t] for t in texts])

    def examples(self, epoch: int) -> int:
        return len(self.targets)

    def lengths(self, epoch: int) -> np.ndarray:
        return self.rows.lengths.reshape(len(self.targets), -1).max(1)

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        if not self.both:
            return super().build(examples, rng)
        rows = self.rows.batch((2 * np.asarray(examples)[:, None] + [0, 1]).ravel())
        batch = {name: a.reshape(len(examples), 2, -1) for name, a in rows.items()}
        return batch | ({"labels": self.labels(examples)} if self.known else {})

    def criterion(self, model: nn.Module) -> criteria.Labelled:
        weight = self.settings["lm_weight"]
        if weight or self.both:
            if kinds.TEXT not in kinds.taken(model):
                family = getattr(model, "config").model_type
                raise ArgumentError(
                    f"task.lm_weight and task.both_orders are for decoders that classify, and this "
                    f"is {family}; leave them"
                )
            return criteria.WithText(weight, squares=self.squares)
        if self.settings["label_smoothing"] and self.names:
            return criteria.Labelled(self.settings["label_smoothing"])
        return super().criterion(model)

    def predictions(self, collected: Sequence[np.ndarray]) -> list[Record]:
        found = []
        for logits in collected:
            probabilities = softmax(logits)
            best = int(probabilities.argmax())
            found.append(
                {
                    "label": self.names[best],
                    "probabilities": dict(zip(self.names, probabilities.round(6).tolist())),
                }
            )
        return found

    def scores(self, predictions: Sequence[Record]) -> dict[str, float]:
        """Metrics of the task; F1 of two classes is that of the second."""
        numbers = {name: i for i, name in enumerate(self.names)}
        return evaluate.compute(
            self.settings["metrics"], [numbers[p["label"]] for p in predictions], list(self.targets)
        )

    def right(self) -> list[Record]:
        return [{"label": self.names[t]} for t in self.targets]


class Regression(Classification):
    """One number for each text, or pair of texts."""

    squares = True

    def labels(self, examples: np.ndarray) -> np.ndarray:  # type: ignore[override]
        return np.array([self.targets[i] for i in examples], np.float32)

    def predictions(self, collected: Sequence[np.ndarray]) -> list[Record]:
        return [{"value": float(value[0])} for value in collected]

    def scores(self, predictions: Sequence[Record]) -> dict[str, float]:
        return evaluate.compute(
            self.settings["metrics"], [p["value"] for p in predictions], list(self.targets)
        )

    def right(self) -> list[Record]:
        return [{"value": t} for t in self.targets]


class MultipleChoice(Examples):
    """Which of the choices goes with the context (and question):
    each is a row, context first and choice second.
    """

    def __init__(self, records: Sequence[Record], targets: Sequence[int | None], *common: Any):
        super().__init__(*common)
        self.targets, self.K = targets, len(records[0]["choices"])
        self.decoder = kinds.CHOICE in kinds.taken(self.model)
        contexts = [
            " ".join(filter(None, (r["context"], r["question"]))) for r in records for _ in range(self.K)
        ]
        choices = [choice for r in records for choice in r["choices"]]
        self.rows.add(contexts, choices, max_length=self.length, truncation="only_first")
        self.cut = self.count_cut(list(zip(contexts, choices)))

    def examples(self, epoch: int) -> int:
        return len(self.targets)

    def lengths(self, epoch: int) -> np.ndarray:
        return self.rows.lengths.reshape(-1, self.K).max(1) * self.K

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        numbers = (np.asarray(examples)[:, None] * self.K + np.arange(self.K)).ravel()
        flat = self.rows.batch(numbers)
        batch: dict[str, np.ndarray] = {
            name: a.reshape(len(examples), self.K, -1) for name, a in flat.items()
        }
        if self.decoder:  # the last token speaks for the choice
            lengths, width = self.rows.lengths[numbers], flat["input_ids"].shape[1]
            starts = np.array([self.rows.start(width, n) for n in lengths])
            batch["mc_token_ids"] = (starts + lengths - 1).reshape(len(examples), self.K)
        return batch | ({"labels": self.labels(examples)} if self.known else {})

    def criterion(self, model: nn.Module) -> criteria.Labelled:
        if not self.decoder:
            return super().criterion(model)
        return criteria.WithText(self.settings["lm_weight"], "mc_labels", "labels")

    def collect(self, out: Output, n: int) -> list[np.ndarray]:
        return list((out.mc_logits if self.decoder else out.logits).numpy().astype(np.float64))

    def predictions(self, collected: Sequence[np.ndarray]) -> list[Record]:
        return [{"choice": int(x.argmax()), "probabilities": softmax(x).round(6).tolist()} for x in collected]

    def scores(self, predictions: Sequence[Record]) -> dict[str, float]:
        return evaluate.compute(
            self.settings["metrics"], [p["choice"] for p in predictions], list(self.targets)
        )

    def right(self) -> list[Record]:
        return [{"choice": t} for t in self.targets]


def softmax(logits: np.ndarray) -> np.ndarray:
    x = np.exp(logits - logits.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)
