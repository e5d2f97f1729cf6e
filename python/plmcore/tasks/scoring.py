"""A model's predictions on examples, with its loss and scores."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from plmcore import nn
from plmcore._core import Tensor
from plmcore.data.readers import Record
from plmcore.tasks.examples import Examples


class Scoring:
    """model -> loss and scores; `found` and `predictions` are those of the last call. Examples of like lengths run together. Without `final` no texts are
    written, which takes long."""

    def __init__(self, examples: Examples, batch: int, *, final: bool = False):
        self.examples, self.batch, self.final = examples, batch, final
        self.predictions: list[Record] = []
        self.found: dict[str, float] | None = None

    def __call__(self, model: nn.Module) -> dict[str, float]:
        examples, loss = self.examples, self.examples.loss(model)
        n = examples.examples(0)
        order = np.argsort(-cast(np.ndarray, examples.lengths(0)), kind="stable")
        collected: list[Any] = [None] * n
        total, count = 0.0, 0
        with nn.inference():
            for at in range(0, n, self.batch):
                chosen = order[at : at + self.batch]
                batch = examples.batch(chosen, seed=0, epoch=0)
                out, mean = loss.plain({name: Tensor(a) for name, a in batch.items()})
                for i, found in zip(chosen, examples.collect(out, len(chosen)), strict=True):
                    collected[i] = found
                if examples.known and (labels := loss.count(batch)):
                    total, count = total + mean.item() * labels, count + labels
            self.predictions = examples.predictions(collected)
            if examples.generates and self.final:
                self.predictions = cast(Any, examples).generated(model, self.batch)
        self.found = {}
        if examples.known:
            self.found = {**examples.of_loss(total / max(1, count)), **examples.scores(self.predictions)}
        return self.found
