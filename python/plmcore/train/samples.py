"""What a model makes of text that it has not seen, for the report:
how it goes on, what it fills in, what it writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from plmcore import nn
from plmcore.language_model import LanguageModel
from plmcore.models import labels
from plmcore.models.generates import Generates
from plmcore.objectives.objective import IGNORED
from plmcore.train.loop import Trainer
from plmcore.train.run_data import RunData
from plmcore.train.run_directory import RunDirectory

PROMPT, NEW = 12, 60  # tokens
SAMPLED_FROM = 20  # the most likely ones


class Samples:
    """A callback of the loop: after each evaluation a line of metrics with a sample."""

    def __init__(self, run: RunDirectory, data: RunData):
        self.run, self.data = run, data
        self.examples: list[dict[str, np.ndarray]] | None = None

    def __call__(self, trainer: Trainer, metrics: Mapping[str, float]) -> None:
        if trainer.score is not None and not self.silent(trainer.model):
            lm = LanguageModel(trainer.model, self.data.tokenizer)
            self.run.record({"step": trainer.step, "sample": self.text(lm, trainer.seed)})

    @staticmethod
    def silent(model: nn.Module) -> bool:
        """BERT and RoBERTa as decoders: they are no encoders whose gaps could be filled, and generation does
        not know them. Nor does it models of two directions.
        """
        if labels.BIDIRECTIONAL in labels.taken(model):
            return True
        return labels.NEXT in labels.taken(model) and not isinstance(model, Generates)

    def text(self, lm: LanguageModel, seed: int) -> str:
        if lm.head == "causal-lm" and labels.BLANKS not in labels.taken(lm.model):
            return continued(lm, self.data.prompt(PROMPT), seed)
        if self.examples is None:
            self.examples = self.data.shown(seed)
        sample = written if lm.head == "seq2seq-lm" else filled
        return "\n\n".join(sample(lm, example) for example in self.examples)


def continued(lm: LanguageModel, prompt: np.ndarray, seed: int) -> str:
    """The beginning of the held-out text, and how the model goes on."""
    room = (lm.config.longest or len(prompt) + NEW) - len(prompt)
    ids = lm.generate(
        prompt[None], do_sample=True, top_k=SAMPLED_FROM, seed=seed, max_new_tokens=min(NEW, room)
    )
    tokenizer: Any = lm.tokenizer
    text: str = tokenizer.decode(ids[0])
    return text


def written(lm: LanguageModel, example: Mapping[str, np.ndarray]) -> str:
    """What an encoder-decoder reads, and the likeliest text it writes."""
    ids = lm.generate(example["input_ids"], max_new_tokens=min(NEW, lm.config.longest or NEW))
    return f"{visible(lm.tokenizer, example['input_ids'][0])}\n-> {visible(lm.tokenizer, ids[0])}"


def filled(lm: LanguageModel, example: Mapping[str, np.ndarray]) -> str:
    """A text with hidden tokens, and with the likeliest in their place."""
    known = {k: v for k, v in example.items() if not k.endswith(("labels", "_label"))}
    with nn.inference():
        out = lm.model(**lm.model.tensors(known))
    likeliest = (out.prediction_logits if lm.head == "pretraining" else out.logits).numpy().argmax(-1)
    whole = np.where(example["labels"] != IGNORED, likeliest, example["input_ids"])
    return f"{visible(lm.tokenizer, example['input_ids'][0])}\n-> {visible(lm.tokenizer, whole[0])}"


def visible(tokenizer: Any, ids: np.ndarray) -> str:
    """With special tokens, but for padding."""
    pad = tokenizer.pad_token_id
    return tokenizer.decode([i for i in np.asarray(ids).tolist() if i != pad], skip_special_tokens=False)
