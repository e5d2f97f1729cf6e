"""A text from a text: translation, summaries, or any task as T5 casts it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from plmcore import criteria, evaluate, generate, nn
from plmcore.data.readers import Record
from plmcore.evaluate.likelihood import perplexity_of
from plmcore.language_model import LanguageModel
from plmcore.models.labels import DECODER
from plmcore.models.outputs import Output
from plmcore.objectives.objective import IGNORED
from plmcore.objectives.rng import Rng
from plmcore.objectives.text_to_text import TASKS, Task
from plmcore.tasks.examples import Examples
from plmcore.tasks.rows import Rows


class Seq2Seq(Examples):
    """input_ids of the source behind task.prefix, labels of the target.

    Scores need texts, which are written in the end alone.
    """

    head = "seq2seq-lm"
    generates = True

    def __init__(self, records: Sequence[Record], *common: Any):
        super().__init__(*common)
        self.targets = [r["target"] for r in records]
        sources = [self.settings["prefix"] + r["source"] for r in records]
        self.rows.add(sources, max_length=self.length)
        self.answers = Rows(self.tokenizer, False)
        if self.known:
            self.answers.add(self.targets, max_length=self.settings["target_length"])
        self.cut = self.count_cut([[s] for s in sources])

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        batch = self.rows.batch(examples)
        if self.known:
            width = max(len(self.answers.ids[i]) for i in examples)
            labels = batch["labels"] = np.full((len(examples), width), IGNORED, np.int64)
            for row, i in zip(labels, examples, strict=True):
                row[: len(self.answers.ids[i])] = self.answers.ids[i]
        return batch

    def criterion(self, model: nn.Module) -> criteria.Labelled:
        return criteria.Tokens(DECODER, self.settings["label_smoothing"])

    def collect(self, out: Output, n: int) -> list[None]:
        return [None] * n

    def predictions(self, collected: Sequence[None]) -> list[Record]:
        return []

    def generated(self, model: nn.Module, batch: int) -> list[Record]:
        """The text that the model writes for every source."""
        lm = LanguageModel(model, self.tokenizer)
        texts: list[str] = []
        for start in range(0, len(self.rows), batch):
            inputs = self.rows.batch(range(start, min(start + batch, len(self.rows))))
            ids = generate.generate(
                lm,
                inputs["input_ids"],
                inputs["attention_mask"],
                max_new_tokens=self.settings["target_length"],
                num_beams=self.settings["beams"],
            )
            texts += self.tokenizer.decode(np.atleast_2d(ids))
        return [{"text": text.strip()} for text in texts]

    def scores(self, predictions: Sequence[Record]) -> dict[str, float]:
        if not predictions:
            return {}
        return evaluate.compute(
            self.settings["metrics"], [p["text"] for p in predictions], list(self.targets)
        )

    def right(self) -> list[Record]:
        return [{"text": t} for t in self.targets]

    def of_loss(self, loss: float) -> dict[str, float]:
        return {"loss": loss, "perplexity": perplexity_of(loss)}


class TextLabels(Seq2Seq):
    """Classes and numbers as text, as T5 has them: the input behind the task's prefixes, the name of the
    class as the target.

    A text that names no class is wrong, and no number counts as 0.
    """

    def __init__(
        self,
        records: Sequence[Record],
        targets: Sequence[int | float | None],
        names: Sequence[str],
        task: str,
        *common: Any,
    ):
        cast = TASKS.get(task) or Task("{text} {pair}" if "pair" in records[0] else "{text}")
        numbered = cast.labels is not None and list(names) == [str(i) for i in range(len(cast.labels))]
        labels: Any = range(len(names)) if numbered else names  # the task's own names for 0, 1, ...
        rows = []
        for record, target in zip(records, targets, strict=True):
            label: Any = 0
            if target is not None:
                label = labels[target] if names else target
            source, text = cast({**record, "label": label})
            rows.append({"source": source, "target": None if target is None else text})
        super().__init__(rows, *common)
        self.numbers, self.names = targets, [cast({**records[0], "label": n})[1] for n in labels]

    def scores(self, predictions: Sequence[Record]) -> dict[str, float]:
        if not predictions:
            return {}
        found = [self.number(p["text"], right) for p, right in zip(predictions, self.numbers, strict=True)]
        return evaluate.compute(self.settings["metrics"], found, list(self.numbers))

    def number(self, text: str, right: Any) -> int | float:
        if self.names:
            return self.names.index(text) if text in self.names else (right + 1) % len(self.names)
        return self.value(text)

    @staticmethod
    def value(text: str) -> float:
        try:
            return float(text) if math.isfinite(float(text)) else 0.0
        except ValueError:
            return 0.0
