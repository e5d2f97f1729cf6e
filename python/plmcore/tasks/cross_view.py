"""Fine-tuning with Cross-View Training: batches with labels and without by turns, and several tasks."""

from __future__ import annotations

import array
import gzip
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plmcore import generate, models
from plmcore._core import ArgumentError, FormatError
from plmcore.criteria import Criterion, CrossViewTranslation
from plmcore.criteria.cross_view import TASK
from plmcore.data import Batches, mapped
from plmcore.files import text
from plmcore.models import translation_views
from plmcore.models.config import Config
from plmcore.models.cross_view import CrossView
from plmcore.models.translation_views import TranslationViews
from plmcore.objectives.objective import IGNORED, Objective
from plmcore.objectives.rng import Rng
from plmcore.runtime import draws
from plmcore.tasks.scoring import Scoring
from plmcore.tokenizers import Tokenizer

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel
    from plmcore.tasks.task_data import TaskData

TURN = 0x7475726E  # keeps the draws of tasks apart from those of orders


def learns(config: Config, head: str) -> bool:
    """Whether a head of the config's family has auxiliary heads, which learn without labels."""
    return _has_views(models.family(config).HEADS.get(head))


def check(config: Config, head: str, data: TaskData) -> None:
    """ArgumentError where a model cannot learn from what the settings name."""
    if data.kind == "seq2seq" and not data.table["also"]:
        if data.table["unlabelled"]:
            translation_views.check(config)
        return
    asked = [f"data.{key}" for key in ("unlabelled", "also") if data.table[key]]
    if asked and not learns(config, head):
        able = {m for f in models.families() for m in f.MODEL_TYPES if any(map(_has_views, f.HEADS.values()))}
        raise ArgumentError(
            f"{asked[0]} is for models with auxiliary heads ({', '.join(sorted(able))}), and "
            f"{config.model_type} has none for {data.settings['run']['task']}; leave it"
        )


class Unlabelled(Objective):
    """The sentences of a text file, one on each line, words between white space; blank lines do not count.

    The text stays in its file, and is encoded batch by batch.
    """

    def __init__(
        self, path: str | os.PathLike[str], tokenizer: Tokenizer, length: int, errors: str = "strict"
    ):
        self.path, self.tokenizer, self.length, self.errors = pathlib.Path(path), tokenizer, length, errors
        starts, ends, words, at = array.array("q"), array.array("q"), array.array("q"), 0
        with text.opened(self.path) as f:
            for number, raw in enumerate(f, 1):
                if n := len(text.decode(raw, errors, self.path, number, at).split()):
                    starts.append(at)
                    ends.append(at + len(raw))
                    words.append(n)
                at += len(raw)
            packed = isinstance(f, gzip.GzipFile)
        if not words:
            raise FormatError(f"'{self.path}' has no text to learn from")
        self.starts, self.ends, self.words = (np.array(x, np.int64) for x in (starts, ends, words))
        if packed:
            with text.opened(self.path) as f:
                self.bytes = np.frombuffer(f.read(), np.uint8)
        else:
            self.bytes = mapped.array(self.path, np.dtype(np.uint8))

    def examples(self, epoch: int) -> int:
        return len(self.starts)

    def lengths(self, epoch: int) -> np.ndarray:
        return np.minimum(self.words + self.tokenizer.format.added(False), self.length)

    def build(self, examples: np.ndarray, rng: Rng) -> dict[str, np.ndarray]:
        raw = [self.bytes[self.starts[i] : self.ends[i]].tobytes() for i in examples]
        texts = [
            text.decode(r, self.errors, self.path, 0, int(self.starts[i])) for r, i in zip(raw, examples)
        ]
        found = self.tokenizer(texts, max_length=self.length, padding_side="right")
        return {name: found[name] for name in found if name != "token_type_ids"}


class Turns:
    """Batches with labels and, where there are any, without, by turns.

    Which task has the next ones is drawn, with a chance by the square root of the number of its batches.
    """

    def __init__(self, labelled: Sequence[Batches], unlabelled: Batches | None, seed: int):
        self.labelled, self.unlabelled, self.seed = labelled, unlabelled, seed
        sizes = np.sqrt([b.steps_per_epoch(0) for b in labelled])
        self.chances = np.cumsum(sizes / sizes.sum())
        self._places: list[
            tuple[int, int]
        ] = []  # of batches with labels: the task, and the number of its batch
        self._next = [0] * len(labelled)

    def __getitem__(self, step: int) -> dict[str, np.ndarray]:
        number, unlabelled = (step, 0) if self.unlabelled is None else divmod(step, 2)
        if unlabelled and self.unlabelled is not None:
            return self.unlabelled[number]
        task, at = self.place(number)
        return self.labelled[task][at] | {TASK: np.array(task)}

    def place(self, number: int) -> tuple[int, int]:
        """The task of a batch with labels, and the number of the batch in that task."""
        while len(self._places) <= number:
            drawn = float(draws.uniform(self.seed, TURN, len(self._places)))
            task = min(int(np.searchsorted(self.chances, drawn, side="right")), len(self.labelled) - 1)
            self._places.append((task, self._next[task]))
            self._next[task] += 1
        return self._places[number]

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """A pass over the longer of both kinds of text."""
        labelled = sum(b.steps_per_epoch(epoch) for b in self.labelled)
        if self.unlabelled is None:
            return labelled
        return 2 * max(labelled, self.unlabelled.steps_per_epoch(epoch))


def batches(lm: LanguageModel, data: TaskData, own: Batches, tokenizer: Tokenizer, **options: Any) -> Turns:
    """Of the run's task, of further tasks and of unlabelled text. options: those of Batches."""
    batch = data.table["batch"]
    others = [
        Batches(
            further.examples("train", tokenizer, lm.model.alone(1 + i)), batch, drop_last=False, **options
        )
        for i, further in enumerate(data.further.values())
    ]
    unlabelled = None
    if path := data.table["unlabelled"]:
        read = Unlabelled(path, tokenizer, data.table["length"], data.table["errors"])
        unlabelled = Batches(read, batch, drop_last=False, bucket=True, **options)
    return Turns([own, *others], unlabelled, options["seed"])


def translation(
    lm: LanguageModel,
    data: TaskData,
    own: Batches,
    criterion: Criterion,
    tokenizer: Tokenizer,
    **options: Any,
) -> tuple[TranslationViews, Turns, Criterion]:
    """A translation model with auxiliary decoders, its batches, and what they are trained by."""
    table, task = data.table, data.settings["task"]
    read = Unlabelled(table["unlabelled"], tokenizer, table["length"], table["errors"])
    turns = Turns(
        [own], Batches(read, table["batch"], drop_last=False, bucket=True, **options), options["seed"]
    )

    def write(input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        found = generate.generate(
            lm, input_ids, attention_mask, max_new_tokens=task["target_length"], num_beams=task["beams"]
        )
        return written(np.atleast_2d(found)[:, 1:], lm.config.eos_token_id)

    return TranslationViews(lm.model), turns, CrossViewTranslation(criterion, write)


def written(ids: np.ndarray, end: int | None) -> np.ndarray:
    """The tokens of texts up to their ends, -100 behind them."""
    over = np.cumsum(ids == end, 1) - (ids == end) > 0
    return np.where(over, IGNORED, ids)


class OfPrimary(Scoring):
    """The scores of a model whose auxiliary decoders train with it."""

    def __call__(self, model: Any) -> dict[str, float]:
        return super().__call__(model.primary)


def further_scores(lm: LanguageModel, data: TaskData, tokenizer: Tokenizer) -> dict[str, Scoring]:
    """Of each further task that has something to be scored on, by "name-split"."""
    found = {}
    for i, (name, further) in enumerate(data.further.items()):
        model = lm.model.alone(1 + i)
        for split in further.records:
            if split != "train":
                scoring = Scoring(further.examples(split, tokenizer, model), data.table["batch"], final=True)
                scoring(model)
                found[f"{name}-{split}"] = scoring
    return found


def of_task(lm: LanguageModel, kind: str, name: str | None = None) -> LanguageModel:
    """The model of one of its tasks: of the one with this name, else of the first of this kind."""
    if not learns(lm.config, lm.head) or not lm.config.tasks:
        return lm
    names, kinds = lm.model.tasks, [heads.kind for heads in lm.model.heads]
    if name is not None and name not in names:
        raise ArgumentError(f"task.name must be one of the model's tasks, {', '.join(names)}, got {name!r}")
    if name is None and kind not in kinds:
        return lm
    number = kinds.index(kind) if name is None else names.index(name)
    return type(lm)(lm.model.alone(number), lm.tokenizer, lm.source, lm.report) if number else lm


def _has_views(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, CrossView)
