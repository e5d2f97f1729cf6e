from __future__ import annotations

from typing import Any

import numpy as np

from plmcore.models.labels import NEXT
from plmcore.objectives.objective import TextObjective
from plmcore.objectives.rng import Rng


class CausalLM(TextObjective):
    """Every token is predicted from those before it: input_ids and labels, which the model moves by one.

    packing "windows": runs of `length` tokens of the whole text, with the end token, if the family has one,
    after each document. "documents" and the sentence packings have the family's special tokens around each
    example. `streams` is for models that carry a state from batch to batch: see packing.Windows. Labels are
    the same with and without.
    """

    labels = NEXT

    def __init__(
        self,
        corpus: Any,
        tokenizer: Any,
        length: int = 1024,
        *,
        packing: str = "windows",
        stride: int | None = None,
        streams: int | None = None,
    ):
        self.windows = packing == "windows"
        super().__init__(
            corpus,
            tokenizer,
            length,
            packing,
            separator=tokenizer.eos_token_id,
            stride=stride,
            streams=streams,
            body=length if self.windows else None,
        )

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        starts, lengths = self.packing.runs(examples)
        text = self.packing.text
        ids = text.take(starts, lengths, self.format.pad)
        if self.windows:  # nothing around them, no padding
            return {"input_ids": ids, "labels": ids}
        layout = self.format(lengths)
        return layout.inputs(ids) | {"labels": layout.labels(ids)}
