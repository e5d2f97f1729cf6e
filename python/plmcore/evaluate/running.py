"""plm.evaluate and `plmcore evaluate`: a model directory, files, a task, scores."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from plmcore._core import ArgumentError, FormatError

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel
    from plmcore.models.config import Config

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def evaluate(
    model: LanguageModel | str | os.PathLike[str], files: Files, task: str | None = None, **options: Any
) -> dict[str, Any]:
    """Scores a model, or the model of a directory, on files or on the folder of a published task.

    `task`: a key of TASKS, a kind of task that the model was fine-tuned for, or a published task, which is also put to a language model that was not
    (plmcore.tasks.zero_shot); without it the task that the model was fine-tuned for, else perplexity. `options` are the task's.
    """
    if task is not None:
        check_task(task)
    paths = [pathlib.Path(f) for f in ([files] if isinstance(files, (str, os.PathLike)) else files)]
    if not paths:
        raise ArgumentError("evaluate: there are no files")
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"there is no file '{path}'")
    if isinstance(model, (str, os.PathLike)):
        from plmcore import language_model

        model = language_model.load(model)
    if task is None:
        task = trained_for(model.config)
    if task in TASKS:
        return TASKS[task](model, paths, **options)
    from plmcore.tasks import evaluation, zero_shot

    if len(paths) != 1:
        raise ArgumentError(f"evaluate: {task} is scored on one file, got {len(paths)}")
    untrained = is_published(task) and not ({*options} & {"changes", "predictions"}) and zero_shot.is_for(model, task)
    if untrained:
        return zero_shot.score(model, paths[0], task, **options)
    if unknown := sorted({*options} - {"split", "columns", "changes", "predictions", "errors"}):
        raise ArgumentError(f"evaluate: {unknown[0]} means nothing to {task} of a model with the head {model.head}")
    return evaluation.score(model, paths[0], task, **options)


def check_task(task: str) -> None:
    from plmcore.tasks.records import KINDS

    if task not in (*TASKS, *KINDS) and not is_published(task):
        own = f"{', '.join(KINDS)} or a name of plmcore.data"
        raise ArgumentError(f"there is no task {task!r}; one of {', '.join(TASKS)}, or of fine-tuned models {own}")


def is_published(task: str) -> bool:
    from plmcore import data

    return task in data.TASKS


def trained_for(config: Config) -> str:
    """The task that config.json remembers from fine-tuning; perplexity where there is none."""
    from plmcore.tasks import task_settings

    task = task_settings.remembered(config).get("task", "lm")
    return "perplexity" if task == "lm" else task


def perplexity(
    lm: LanguageModel,
    paths: Sequence[pathlib.Path],
    *,
    source: str | os.PathLike[str] | None = None,
    errors: str = "strict",
    **options: Any,
) -> dict[str, Any]:
    """Text files, each a text of its own; for a model with an encoder one file of targets and one of sources, line by line."""
    from plmcore.evaluate.likelihood import perplexity

    if source is None:
        return perplexity(lm, paths, errors=errors, **options).to_dict()
    if len(paths) != 1:
        raise ArgumentError(f"evaluate: a file of sources goes with one file of targets, got {len(paths)}")
    targets, sources = text_lines(paths[0], errors), text_lines(pathlib.Path(source), errors)
    if len(targets) != len(sources):
        raise FormatError(
            f"'{paths[0]}' has {len(targets)} lines and '{source}' {len(sources)}; they must be translations of each other"
        )
    return perplexity(lm, targets, sources, **options).to_dict()


def last_word(
    lm: LanguageModel, paths: Sequence[pathlib.Path], *, errors: str = "strict", **options: Any
) -> dict[str, Any]:
    """LAMBADA's formats: JSON objects with `text`, one per line, or in a .txt file the texts themselves; a folder has one of its test files."""
    from plmcore import data
    from plmcore.evaluate.choices import last_words

    texts: list[str] = []
    for path in paths:
        if path.is_dir():
            records = data.task("lambada").read(path, "test", errors=errors)
            texts += [f"{record['context']} {record['answers'][0]}" for record in records]
        elif ".txt" in path.suffixes:
            texts += [line for line in text_lines(path, errors) if line.strip()]
        else:
            texts += [_field(record, "text", where) for record, where in json_lines([path], errors)]
    found = last_words(lm, texts, **options)
    return {"accuracy": found.accuracy, "perplexity": found.perplexity, "texts": len(found.right)}


def choices(
    lm: LanguageModel, paths: Sequence[pathlib.Path], *, errors: str = "strict", **options: Any
) -> dict[str, Any]:
    """JSON objects with `context`, `choices` and `label`, one per line."""
    from plmcore.evaluate.choices import choose

    records = []
    for record, where in json_lines(paths, errors):
        _field(record, "label", where)
        records.append(record)
    found = choose(lm, records, **options)
    return {"accuracy": found.accuracy, "records": len(records)}


def few_shot(
    lm: LanguageModel,
    paths: Sequence[pathlib.Path],
    *,
    shots: str | os.PathLike[str] | None = None,
    errors: str = "strict",
    **options: Any,
) -> dict[str, Any]:
    """JSON objects with the fields of the template, and choices with label, or answer; `shots` is a file of solved ones."""
    from plmcore.evaluate.prompting import few_shot

    solved = [] if shots is None else [record for record, _ in json_lines([pathlib.Path(shots)], errors)]
    records = [record for record, _ in json_lines(paths, errors)]
    if solved and "k" not in options:
        raise ArgumentError("evaluate: k says how many of the shots stand before each record")
    found = few_shot(lm, records, solved, **options)
    return {**found.scores, "records": len(records), "shots": sum(found.shots) / len(records)}


# name -> function (model, files, **options) -> scores by name, of models that were not trained for the task.
TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "perplexity": perplexity,
    "last-word": last_word,
    "lambada": last_word,
    "choices": choices,
    "few-shot": few_shot,
}


def text_lines(path: pathlib.Path, errors: str) -> list[str]:
    """The lines of a file, without an empty one at the end."""
    from plmcore.evaluate.texts import pieces

    text = "".join(pieces(path, errors=errors))
    return text.removesuffix("\n").split("\n") if text else []


def json_lines(paths: Sequence[pathlib.Path], errors: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects of files with one to a line, and where each stands."""
    from plmcore.data import readers

    for path in paths:
        for number, record in readers.numbered_jsonl(path, errors=errors):
            yield record, f"'{path}', line {number}"


def _field(record: dict[str, Any], name: str, where: str) -> Any:
    if name not in record:
        raise FormatError(f"{where}: has no {name!r}, only {', '.join(record) or 'nothing'}")
    return record[name]
