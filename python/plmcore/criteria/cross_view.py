from __future__ import annotations

from collections.abc import Callable

import numpy as np

from plmcore.criteria.criterion import Batch, Criterion, Term, Terms
from plmcore.criteria.labelled import known
from plmcore.models import cross_view, translation_views
from plmcore.nn.state import State

TASK = "task"  # of a batch with labels: the number of its task


class CrossView(Criterion):
    """Cross-View Training: a batch with labels is for the primary head of its task, one without them for the
    auxiliary heads of all tasks.

    The terms are named "tagging" with labels, and "tagging full", "tagging forward", ... without.
    """

    def __init__(self, model: cross_view.CrossView):
        self.model = model

    def counts(self, batch: Batch) -> dict[str, int]:
        if "labels" not in batch:
            return self.model.unlabelled_counts(batch)
        return {self.model.tasks[int(batch.get(TASK, 0))]: known(batch["labels"])}

    def __call__(
        self, model: cross_view.CrossView, batch: Batch, state: State | None
    ) -> tuple[Terms, State | None]:
        counts = self.counts(batch)
        inputs = model.tensors(_without_task(batch))
        read = inputs["input_ids"], inputs.get("char_ids")
        mask = inputs.get("attention_mask")
        if "labels" in batch:
            [(name, n)] = counts.items()
            loss = model.labelled_loss(*read, inputs["labels"], mask, task=int(batch.get(TASK, 0)))
            return {name: Term.of_mean(loss, n)}, state
        sums = model.unlabelled_sums(*read, mask)
        return {name: Term(sums[name][0], n) for name, n in counts.items()}, state


class CrossViewTranslation(Criterion):
    """Cross-View Training of a translation model: a batch with labels is for the primary model, by a
    criterion of its own; one without is for the auxiliary decoders, which learn what the primary one writes.

    write: (input_ids, attention_mask) -> its tokens [B, T], -100 behind them, found without dropout. Terms
    without labels are sums over sentences, "attention" and "future".
    """

    def __init__(self, labelled: Criterion, write: Callable[[np.ndarray, np.ndarray], np.ndarray]):
        self.labelled, self.write = labelled, write

    def counts(self, batch: Batch) -> dict[str, int]:
        if "labels" in batch:
            return self.labelled.counts(_without_task(batch))
        return dict.fromkeys(translation_views.VIEWS, len(batch["input_ids"]))

    def __call__(
        self, model: translation_views.TranslationViews, batch: Batch, state: State | None
    ) -> tuple[Terms, State | None]:
        if "labels" in batch:
            return self.labelled(model.primary, _without_task(batch), state)
        written = self.write(batch["input_ids"], batch["attention_mask"])
        inputs = model.tensors({**batch, "targets": written})
        sums = model.unlabelled_sums(inputs["input_ids"], inputs["attention_mask"], inputs["targets"])
        return {name: Term(sums[name], n) for name, n in self.counts(batch).items()}, state


def _without_task(batch: Batch) -> Batch:
    return {name: array for name, array in batch.items() if name != TASK}
