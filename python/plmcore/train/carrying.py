from __future__ import annotations

import numpy as np

from plmcore import data
from plmcore.criteria.criterion import CONTINUES, Batch


class Continued:
    """Batches of streams, each row of which goes on where the batch before ended, that say whether they do:
    all but the first of an epoch.
    """

    def __init__(self, batches: data.Batches):
        self.batches = batches

    def __getitem__(self, step: int) -> Batch:
        return self.batches[step] | {CONTINUES: np.array(self.batches.place(step)[1] > 0)}
