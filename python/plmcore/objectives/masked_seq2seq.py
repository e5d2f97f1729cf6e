from __future__ import annotations

from typing import Any

import numpy as np

from plmcore.models.labels import DECODER
from plmcore.objectives import rows
from plmcore.objectives.masked import Masking
from plmcore.objectives.objective import IGNORED, TextObjective
from plmcore.objectives.rng import Rng


class MaskedSeq2Seq(TextObjective):
    """The encoder sees the text with masks, as in MaskedLM; the decoder writes the tokens they hide, in the
    order of the text.

    Settings of the masks are those of Masking, by default exactly 15 % in n-grams of 1
    to 3 words, all of them masks.
    """

    labels = DECODER

    def __init__(
        self,
        corpus: Any,
        tokenizer: Any,
        length: int = 512,
        *,
        packing: str = "full-sentences",
        copies: int | None = None,
        **masking: Any,
    ):
        usual: dict[str, Any] = {"unit": "ngram", "exact": True, "shares": (1.0, 0.0, 0.0)}
        self.masking = Masking(tokenizer, **usual | masking)
        super().__init__(corpus, tokenizer, length, packing, separator=tokenizer.eos_token_id, copies=copies)

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        ids, lengths, able = self.take(examples)
        tokens = (
            self.packing.text.tokens(*self.packing.runs(examples))[0] if self.masking.unit == "span" else None
        )
        layout = self.format(lengths)
        hidden, labels = self.masking.apply(ids, able, layout.lengths, tokens, rng)
        answer, counts = rows.compact(ids, labels != IGNORED, self.format.pad)
        return layout.inputs(hidden) | {"labels": self.format(counts).labels(answer)}
