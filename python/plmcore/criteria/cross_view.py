from __future__ import annotations

from plmcore.criteria.criterion import Batch, Criterion, Term, Terms
from plmcore.criteria.labelled import known
from plmcore.models import cross_view
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
        inputs = model.tensors({name: array for name, array in batch.items() if name != TASK})
        read = inputs["input_ids"], inputs.get("char_ids")
        mask = inputs.get("attention_mask")
        if "labels" in batch:
            [(name, n)] = counts.items()
            loss = model.labelled_loss(*read, inputs["labels"], mask, task=int(batch.get(TASK, 0)))
            return {name: Term.of_mean(loss, n)}, state
        sums = model.unlabelled_sums(*read, mask)
        return {name: Term(sums[name][0], n) for name, n in counts.items()}, state
