"""A model's predictions on examples, with its loss and scores."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from plmcore import criteria, nn
from plmcore.data.readers import Record
from plmcore.tasks.examples import Examples


class Scoring:
    """model -> loss and scores; `found` and `predictions` are those of the last call.

    Examples of like lengths run together. Without `final` no texts are written, which takes long.
    """

    def __init__(self, examples: Examples, batch: int, *, final: bool = False):
        self.examples, self.batch, self.final = examples, batch, final
        self.predictions: list[Record] = []
        self.found: dict[str, float] | None = None

    def __call__(self, model: nn.Module) -> dict[str, float]:
        examples, criterion = self.examples, self.examples.criterion(model)
        n = examples.examples(0)
        order = np.argsort(-cast(np.ndarray, examples.lengths(0)), kind="stable")
        collected: list[Any] = [None] * n
        sums = criteria.Sums()
        with nn.inference():
            for at in range(0, n, self.batch):
                chosen = order[at : at + self.batch]
                batch = examples.batch(chosen, seed=0, epoch=0)
                inputs = model.tensors(batch)
                out = criterion.predict(model, inputs)
                for i, found in zip(chosen, examples.collect(out, len(chosen)), strict=True):
                    collected[i] = found
                if examples.known:
                    sums.add(criterion.terms(out, batch, inputs))
            self.predictions = examples.predictions(collected)
            if examples.generates and self.final:
                self.predictions = cast(Any, examples).generated(model, self.batch)
        self.found = {}
        if examples.known:
            self.found = {**examples.of_loss(sums.loss() or 0.0), **examples.scores(self.predictions)}
        return self.found
