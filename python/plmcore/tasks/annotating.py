"""Texts with the labels of every task that a model was trained for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from plmcore._core import ArgumentError
from plmcore.tasks import cross_view, labels, task_settings
from plmcore.tasks.examples import Classification, Examples
from plmcore.tasks.inference import needed_tokenizer
from plmcore.tasks.scoring import Scoring
from plmcore.tasks.tagging import Tagging

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel
    from plmcore.models import Model

KINDS = {"token-classification": "tagging", "sequence-classification": "classification"}
WORDS = "words"


class Task(NamedTuple):
    name: str
    kind: str
    model: Model
    scheme: str | None  # None: as the settings of its training say


def annotate(lm: LanguageModel, texts: Any, batch_size: int) -> Any:
    """See LanguageModel.annotate."""
    tokenizer = needed_tokenizer(lm, "annotate")
    if isinstance(texts, str):
        return annotate(lm, [texts], batch_size)[0]
    sentences = [t.split() if isinstance(t, str) else list(t) for t in texts]
    found: list[dict[str, Any]] = [{WORDS: words} for words in sentences]
    asked = [i for i, words in enumerate(sentences) if words]
    for task in tasks_of(lm):
        if not asked:
            break
        chosen = task_settings.of_use(_trained(task), task.model.config, {})
        scheme = chosen["task"]["scheme"] if task.scheme is None else task.scheme
        examples = _examples(task, [sentences[i] for i in asked], tokenizer, chosen)
        scoring = Scoring(examples, batch_size)
        scoring(task.model)
        for i, predicted in zip(asked, scoring.predictions, strict=True):
            answer: Any = predicted["tags" if task.kind == "tagging" else "label"]
            bioes = task.kind == "tagging" and scheme == "bioes"
            found[i][task.name] = labels.bio(answer) if bioes else answer
    return found


def tasks_of(lm: LanguageModel) -> Iterator[Task]:
    """The tasks of a model, each with a model of it alone."""
    if lm.head not in KINDS or lm.config.problem_type == "regression":
        raise ArgumentError(
            f"annotate: this model has the head {lm.head}, and gives words no tags and texts no classes; "
            f"fine-tune it for tagging or classification"
        )
    if not cross_view.learns(lm.config, lm.head):
        own = task_settings.remembered(lm.config).get("name") or KINDS[lm.head]
        yield Task(own, KINDS[lm.head], lm.model, None)
        return
    schemes = [None, *(t.get("scheme", "none") for t in lm.config.tasks)]
    for number, (name, scheme) in enumerate(zip(lm.model.tasks, schemes, strict=True)):
        model = lm.model.alone(number)
        yield Task(name, model.kind, model, scheme)


def _trained(task: Task) -> str:
    """The task of the training, where it was of this kind."""
    known = task_settings.remembered(task.model.config).get("task", task.kind)
    return known if task_settings.kind_of(known) == task.kind else task.kind


def _examples(
    task: Task, sentences: Sequence[Sequence[str]], tokenizer: Any, chosen: dict[str, Any]
) -> Examples:
    config = task.model.config
    known = config.extra.get("id2label") or {}
    names = [known.get(str(i), f"LABEL_{i}") for i in range(config.num_labels)]
    common = (tokenizer, task.model, chosen["data"]["length"], chosen["task"] | {"lm_weight": 0.0})
    unknown = [None] * len(sentences)
    if task.kind == "tagging":
        records = [{"tokens": words, "line": f"text {i}"} for i, words in enumerate(sentences, 1)]
        return Tagging(records, unknown, names, *common)
    return Classification([{"text": " ".join(words)} for words in sentences], unknown, names, *common)
