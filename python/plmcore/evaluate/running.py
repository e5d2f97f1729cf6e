"""plm.evaluate and `plmcore evaluate`: a model directory, files, a task, scores."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from plmcore._core import ArgumentError, FormatError
from plmcore.data import tables
from plmcore.data.tables import Table
from plmcore.evaluate import words
from plmcore.language_model.directory import TASK_HEADS
from plmcore.runtime.kinds import checked

if TYPE_CHECKING:
    from plmcore.language_model import LanguageModel
    from plmcore.models.config import Config
    from plmcore.vectors import Vectors

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Rows = list[dict[str, Any]]  # of a table in memory


@checked
def evaluate(
    model: LanguageModel | Vectors | str | os.PathLike[str],
    files: Files | Table,
    task: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Scores a model or word vectors, given or in a directory, on files, on the folder of a published task,
    or on a table in memory: a list of dicts, a dict of lists, a pandas DataFrame or a pyarrow Table, with the
    columns that a file would have.

    `task` is a key of TASKS, for word vectors one of VECTOR_TASKS, a kind of task that the model was
    fine-tuned for, or a published task, which is also put to a language model that was not
    (plmcore.tasks.zero_shot). Without it the task is what the model was fine-tuned for, else perplexity.
    `options` are the task's.
    """
    if task is not None:
        check_task(task)
    source: list[pathlib.Path] | Rows
    if tables.is_table(files) and not (isinstance(files, (list, tuple)) and not files):
        source = tables.rows(files, "evaluate")
    else:
        source = paths_of(cast(Files, files))
    if task in VECTOR_TASKS:
        return VECTOR_TASKS[task](words.opened(model, task), source, **options)
    if isinstance(model, (str, os.PathLike)):
        from plmcore import language_model

        model = language_model.load(model)
    model = cast("LanguageModel", model)
    if task is None:
        task = trained_for(model.config)
        if task == "perplexity" and model.head in TASK_HEADS:
            raise ArgumentError(
                f"evaluate: this model has the head {model.head}, and its directory does not say for "
                f"which task: name it, as in task='classification'"
            )
    if task in TASKS:
        return TASKS[task](model, source, **options)
    from plmcore.tasks import evaluation, zero_shot

    one: Any = source if isinstance(source[0], dict) else source[0]
    if isinstance(one, pathlib.Path) and len(source) != 1:
        raise ArgumentError(f"evaluate: {task} is scored on one file, got {len(source)}")
    untrained = (
        is_published(task)
        and not ({*options} & {"changes", "predictions", "others"})
        and zero_shot.is_for(model, task)
    )
    if untrained:
        return zero_shot.score(model, one, task, **options)
    if unknown := sorted({*options} - {"split", "columns", "changes", "predictions", "errors", "others"}):
        raise ArgumentError(
            f"evaluate: {unknown[0]} means nothing to {task} of a model with the head {model.head}"
        )
    return evaluation.score(model, one, task, **options)


def paths_of(files: Files) -> list[pathlib.Path]:
    paths = [pathlib.Path(f) for f in ([files] if isinstance(files, (str, os.PathLike)) else files)]
    if not paths:
        raise ArgumentError("evaluate: there are no files")
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"there is no file '{path}'")
    return paths


def check_task(task: str) -> None:
    from plmcore.tasks.records import KINDS

    if task not in (*TASKS, *VECTOR_TASKS, *KINDS) and not is_published(task):
        own = f"{', '.join(KINDS)} or a name of plmcore.data"
        raise ArgumentError(
            f"there is no task {task!r}; one of {', '.join(TASKS)}, of word vectors "
            f"{', '.join(VECTOR_TASKS)}, or of fine-tuned models {own}"
        )


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
    paths: list[pathlib.Path] | Rows,
    *,
    source: str | os.PathLike[str] | None = None,
    errors: str = "strict",
    **options: Any,
) -> dict[str, Any]:
    """Text files, each a text of its own, or rows with `text`; for a model with an encoder one file of
    targets and one of sources, line by line, or rows with `target` and `source`.
    """
    from plmcore.evaluate.likelihood import perplexity

    if isinstance(paths[0], dict):
        if source is not None:
            raise ArgumentError("evaluate: the sources of a table are its column source, not a file")
        both = "source" in paths[0] and "target" in paths[0]
        texts = [
            _text(record, "target" if both else "text", where) for record, where in json_lines(paths, errors)
        ]
        sources = (
            [_text(record, "source", where) for record, where in json_lines(paths, errors)] if both else None
        )
        return perplexity(lm, texts, sources, **options).to_dict()
    if source is None:
        return perplexity(lm, paths, errors=errors, **options).to_dict()
    if len(paths) != 1:
        raise ArgumentError(f"evaluate: a file of sources goes with one file of targets, got {len(paths)}")
    targets, sources = text_lines(paths[0], errors), text_lines(pathlib.Path(source), errors)
    if len(targets) != len(sources):
        raise FormatError(
            f"'{paths[0]}' has {len(targets)} lines and '{source}' {len(sources)}; they must be "
            f"translations of each other"
        )
    return perplexity(lm, targets, sources, **options).to_dict()


def last_word(
    lm: LanguageModel, paths: list[pathlib.Path] | Rows, *, errors: str = "strict", **options: Any
) -> dict[str, Any]:
    """LAMBADA's formats: JSON objects with `text`, one per line, or in a .txt file the texts themselves;
    a folder has one of its test files.
    """
    from plmcore import data
    from plmcore.evaluate.choices import last_words

    texts: list[str] = []
    for path in paths:
        if isinstance(path, dict):
            texts += [_text(record, "text", where) for record, where in json_lines(paths, errors)]
            break
        if path.is_dir():
            records = data.task("lambada").read(path, "test", errors=errors)
            texts += [f"{record['context']} {record['answers'][0]}" for record in records]
        elif ".txt" in path.suffixes:
            texts += [line for line in text_lines(path, errors) if line.strip()]
        else:
            texts += [_text(record, "text", where) for record, where in json_lines([path], errors)]
    guessed = last_words(lm, texts, **options)
    return {"accuracy": guessed.accuracy, "perplexity": guessed.perplexity, "texts": len(guessed.right)}


def choices(
    lm: LanguageModel, paths: list[pathlib.Path] | Rows, *, errors: str = "strict", **options: Any
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
    paths: list[pathlib.Path] | Rows,
    *,
    shots: str | os.PathLike[str] | Table | None = None,
    errors: str = "strict",
    **options: Any,
) -> dict[str, Any]:
    """JSON objects with the fields of the template, and choices with label, or answer; `shots` is a file, or
    a table, of solved ones.
    """
    from plmcore.evaluate.prompting import few_shot

    given: list[pathlib.Path] | Rows = []
    if tables.is_table(shots):
        given = tables.rows(shots, "shots")
    elif shots is not None:
        given = [pathlib.Path(cast(str, shots))]
    solved = [record for record, _ in json_lines(given, errors)]
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
VECTOR_TASKS: dict[str, Callable[..., dict[str, Any]]] = {  # the same of word vectors
    "analogies": words.analogies,
    "similarity": words.similarity,
}


def text_lines(path: pathlib.Path, errors: str) -> list[str]:
    """The lines of a file, without an empty one at the end."""
    from plmcore.evaluate.texts import pieces

    text = "".join(pieces(path, errors=errors))
    return text.removesuffix("\n").split("\n") if text else []


def json_lines(
    source: Sequence[pathlib.Path | dict[str, Any]], errors: str
) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects of files with one to a line, or the rows of a table, and where each stands."""
    from plmcore.data import readers

    for i, one in enumerate(source, 1):
        if isinstance(one, dict):
            yield one, f"row {i}"
        else:
            for number, record in readers.numbered_jsonl(one, errors=errors):
                yield record, f"'{one}', line {number}"


def _text(record: dict[str, Any], name: str, where: str) -> str:
    text = _field(record, name, where)
    if not isinstance(text, str):
        raise FormatError(f"{where}: {name} must be a text, got {text!r}")
    return text


def _field(record: dict[str, Any], name: str, where: str) -> Any:
    if name not in record:
        raise FormatError(f"{where}: has no {name!r}, only {', '.join(record) or 'nothing'}")
    return record[name]
