"""More pre-training on other text: the family's own objective, on a corpus in the run's directory."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any, cast

from plmcore import criteria, data, models, nn, objectives
from plmcore._core import ArgumentError
from plmcore.files.text import check_text
from plmcore.language_model import LanguageModel
from plmcore.models import labels
from plmcore.models.config import Config
from plmcore.models.declaration import TEXT
from plmcore.train import carrying, held_out


def head_of(config: Config) -> str:
    """The head that the directory was saved with, where it predicts tokens;
    else the family's first that does.
    """
    heads = models.family(config).HEADS
    predicting = ("pretraining", "masked-lm", "causal-lm", "seq2seq-lm")
    own = models.head_of(config)
    found = (
        [own] if own in predicting else [h for h in ("masked-lm", "causal-lm", "seq2seq-lm") if h in heads]
    )
    if not found:
        raise ArgumentError(
            f"{config.model_type} has no head that predicts tokens: it has {', '.join(heads)}"
        )
    return found[0]


def objective_of(config: Config, head: str) -> dict[str, Any]:
    """Name and settings of the objective that a head learns from."""
    recipe = models.family(config).RECIPES.get(config.model_type)
    if head == "masked-lm":
        return {"name": "masked-lm"}
    if head == "causal-lm" and labels.TARGETS not in labels.taken(models.head_class(config, head)):
        return {"name": "causal-lm"}
    if recipe is None or head != recipe.head:
        raise ArgumentError(f"there is no objective for {config.model_type} with the head {head}")
    return {k: v for k, v in recipe.objective.items() if k != "most"}


def write_corpus(folder: pathlib.Path, source: str, lm: LanguageModel, errors: str = "strict") -> None:
    """The text of a file or folder, as the family has its documents."""
    check_text(source)
    recipe = models.family(lm.config).RECIPES.get(lm.config.model_type)
    layout = cast(Mapping[str, Any], TEXT if recipe is None else recipe.data)
    data.write_corpus(folder, [source], lm.tokenizer, **layout, errors=errors, overwrite=True)


class TextExamples:
    """A corpus as the objective has it: what Batches and the loop ask for.

    options: of the table train. With `carry` rows go on from batch to batch, as for pre-training.
    """

    known, generates, cut = True, False, 0

    def __init__(
        self, folder: pathlib.Path, lm: LanguageModel, length: int, batch: int, options: Mapping[str, Any]
    ):
        self.options, self.length, self.batch_size = options, length, batch
        self.table, self.tokenizer = objective_of(lm.config, lm.head), lm.tokenizer
        corpus = data.Corpus.open(folder)
        self.corpus = held_out.backward(corpus) if getattr(lm.config, "backward", False) else corpus
        self.objective = self.made(batch if self.carries else None)
        self.batch, self.lengths = self.objective.batch, self.objective.lengths

    @property
    def carries(self) -> bool:
        return bool(self.options.get("carry"))

    def made(self, streams: int | None) -> objectives.Objective:
        table = dict(self.table)
        if streams is not None:
            table |= {"stride": max(1, self.length - 1), "streams": streams}
        return objectives.make(table.pop("name"), self.corpus, self.tokenizer, length=self.length, **table)

    def __len__(self) -> int:
        return len(self.objective)

    def examples(self, epoch: int) -> int:
        return self.objective.examples(epoch)

    def batches(self, **options: Any) -> Any:
        """To train on; options: those of data.Batches."""
        if not self.carries:
            return data.Batches(self.objective, self.batch_size, drop_last=False, **options)
        if options["ranks"] > 1:
            raise ArgumentError(
                f"train.carry: streams go on from batch to batch in one process, and there are "
                f"{options['ranks']} ranks; set train.carry=false and train.vary=false"
            )
        if self.options["vary"]:
            text: Any = getattr(self.objective, "packing").text
            return carrying.Varied(text, self.batch_size, max(1, self.length - 1), options["seed"])
        return carrying.Continued(data.Batches(self.objective, self.batch_size, shuffle=False, **options))

    def criterion(self, model: Any) -> criteria.Criterion:
        if self.carries:
            return criteria.Carried(ar=self.options["ar"], tar=self.options["tar"])
        return criteria.of(model)

    def scoring(self, batch: int) -> TextScoring:
        if not self.carries:
            batches = data.Batches(self.objective, batch, seed=0, shuffle=False, drop_last=False)
            return TextScoring(batches, batches.steps_per_epoch(0))
        # few enough streams that each has several windows
        streams = max(1, min(batch, len(self.corpus.ids) // self.length // 4))
        rows = carrying.Continued(data.Batches(self.made(streams), streams, seed=0, shuffle=False))
        return TextScoring(rows, rows.steps_per_epoch(0), criterion=lambda model: criteria.Carried())


class TextScoring(held_out.HeldOutLoss):
    """The loss on all of the text; `found` is that of the last call."""

    found: dict[str, float] | None = None

    def __call__(self, model: nn.Module) -> dict[str, float]:
        self.found = super().__call__(model)
        return self.found
