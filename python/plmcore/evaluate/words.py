"""Word vectors on published questions: analogies and people's judgements of similarity."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plmcore._core import ArgumentError

if TYPE_CHECKING:
    from plmcore.vectors import Vectors


def opened(vectors: Any, task: str) -> Vectors:
    """Vectors, or those of a file or a directory."""
    from plmcore.vectors import Vectors, load_vectors

    if isinstance(vectors, (str, os.PathLike)):
        return load_vectors(vectors)
    if not isinstance(vectors, Vectors):
        raise ArgumentError(f"evaluate: {task} is put to word vectors, got {type(vectors).__name__}")
    return vectors


def analogies(vectors: Vectors, paths: Sequence[Any], **options: Any) -> dict[str, Any]:
    """Questions "a b c d" in the lines of one file."""
    found = vectors.analogies(_file(paths, "analogies"), **options)
    return {"accuracy": found.accuracy, "right": found.right, "questions": found.total}


def similarity(vectors: Vectors, paths: Sequence[Any]) -> dict[str, Any]:
    """Two words and a score in the lines of one file."""
    return dict(vectors.similarities(_file(paths, "similarity"))._asdict())


def _file(paths: Sequence[Any], task: str) -> pathlib.Path:
    if len(paths) != 1 or not isinstance(paths[0], pathlib.Path):
        raise ArgumentError(f"evaluate: {task} takes one file, got {len(paths)} files or rows")
    return paths[0]
