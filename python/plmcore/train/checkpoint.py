"""Checkpoints: directories that are either whole or absent, and that know when they were damaged.

    checkpoints/step-00000100/    weights.safetensors  optimizer.safetensors  [average.safetensors]
                                  state.json  manifest.json

A checkpoint is written under a temporary name, synced and renamed. The manifest has the size and SHA-256 of
every file; they are compared before anything is loaded.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from plmcore._core import ArgumentError, FormatError, Tensor
from plmcore.files.whole import (
    atomic_directory,
    atomic_write,
    open_regular,
    read_json,
    remove,
    temporary_name,
)
from plmcore.formats import safetensors

MANIFEST, STATE = "manifest.json", "state.json"
NAME = re.compile(r"step-(\d{8,})")
UNFINISHED = re.compile(r"\.step-\d{8,}\.[\d-]+\.tmp")
FORMAT = 1
# Of what every training remembers
STATE_KINDS = {
    "seed": int,
    "data": str,
    "tokens": int,
    "seconds": int | float,
    "stale": int,
    "score": int | float | None,
    "best": int | float | None,
    "recent": list,
    "first": int | float | None,
    "last": int | float | None,
    "stopped": str | None,
    "lines": dict | None,
    "machine": dict | None,
}
ADDED = ("lines", "machine", "first", "last")  # which older checkpoints do not have

Arrays = Mapping[str, Tensor | np.ndarray]


@dataclass
class Checkpoint:
    """What a checkpoint holds: tensors by part and name, and the state of the run."""

    path: pathlib.Path
    parts: dict[str, dict[str, Tensor]]
    state: dict[str, Any]

    @property
    def step(self) -> int:
        return self.state["step"]


def write(
    folder: pathlib.Path, step: int, parts: Mapping[str, Arrays], state: Mapping[str, Any]
) -> pathlib.Path:
    """folder/step-<step>, in place of one that is there already. After an error nothing is changed."""
    path = folder / f"step-{step:08}"
    with atomic_directory(path) as temporary:
        for part, arrays in parts.items():
            safetensors.write(temporary / f"{part}.safetensors", arrays)
        write_json(temporary / STATE, {**state, "step": step})
        files = {
            file.name: {"bytes": file.stat().st_size, "sha256": digest(file)}
            for file in sorted(temporary.iterdir())
        }
        write_json(temporary / MANIFEST, {"format": FORMAT, "files": files})
    return path


def read(path: pathlib.Path) -> Checkpoint:
    """FormatError where a file is missing, cut off or changed."""
    verify(path)
    parts = {file.stem: safetensors.read(file)[0] for file in sorted(path.glob("*.safetensors"))}
    state = read_part(path / STATE)
    if not isinstance(state.get("step"), int):
        raise FormatError(f"'{path / STATE}' has no step")
    return Checkpoint(path, parts, state)


def check_state(state: Mapping[str, Any], where: str, own: Mapping[str, Any] = {}) -> None:
    """FormatError where the state of a run has not what a training goes on from; `own`: what it adds."""
    for name, kinds in {**STATE_KINDS, **own}.items():
        value = state.get(name) if name in ADDED else state.get(name, ...)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise FormatError(
                f"{where}: {name} in {STATE} is {'missing' if value is ... else f'wrong: {value!r}'}"
            )
    for name, count, kinds in (("recent", 4, int | float), ("lines", None, int), ("machine", None, str)):
        found = state.get(name)
        values = list(found.values()) if isinstance(found, dict) else found or []
        if not all(isinstance(v, kinds) for v in values) or count not in (None, len(values)):
            raise FormatError(f"{where}: {name} in {STATE} is wrong: {found!r}")


def verify(path: pathlib.Path) -> None:
    """Compares every file with the manifest."""
    manifest = read_part(path / MANIFEST)
    files = manifest.get("files")
    if manifest.get("format") != FORMAT or not isinstance(files, dict):
        raise FormatError(f"'{path / MANIFEST}' is not a manifest of format {FORMAT}")
    for name, expected in files.items():
        file = path / name
        if not isinstance(expected, dict) or pathlib.PurePath(name).name != name:
            raise FormatError(f"'{path / MANIFEST}' is damaged at {name!r}")
        if not file.is_file():
            raise FormatError(f"checkpoint '{path}' has lost {name}")
        if (size := file.stat().st_size) != expected.get("bytes"):
            raise FormatError(f"'{file}' has {size} bytes, the manifest says {expected.get('bytes')}")
        if digest(file) != expected.get("sha256"):
            raise FormatError(f"'{file}' was changed: its SHA-256 is not the manifest's")
    unlisted = [file.name for file in path.glob("*.safetensors") if file.name not in files]
    if unlisted or STATE not in files:
        raise FormatError(f"'{path / MANIFEST}' does not list {(unlisted or [STATE])[0]}")


def newest(folder: pathlib.Path) -> tuple[Checkpoint | None, list[str]]:
    """The last checkpoint that is whole, and what is wrong with those after it.

    An error when there are some and none is whole.
    """
    problems: list[str] = []
    for path in reversed(steps_in(folder)):
        try:
            return read(path), problems
        except (FormatError, OSError) as e:
            problems.append(str(e))
    if problems:
        raise FormatError(f"no checkpoint in '{folder}' can be read: " + "; ".join(problems))
    return None, []


def steps_in(folder: pathlib.Path) -> list[pathlib.Path]:
    """Paths of the checkpoints, oldest first; they are not read."""
    if not folder.is_dir():
        return []
    found = [p for p in folder.iterdir() if NAME.fullmatch(p.name) and p.is_dir()]
    return sorted(found, key=step_of)


def step_of(path: pathlib.Path) -> int:
    return int(path.name.partition("-")[2])


def prune(folder: pathlib.Path, keep: int) -> None:
    """Leaves the last `keep` checkpoints, the newest also where it was not due, and the one with the lowest
    score; takes away what was never finished.
    """
    paths = steps_in(folder)
    kept = {*due(paths)[-keep:], *paths[-1:]}
    scored = [(score, p) for p in paths if (score := _state(p).get("score")) is not None]
    if scored:
        kept.add(min(scored, key=lambda pair: pair[0])[1])
    for path in paths:
        if path not in kept:
            # Under a name that is no checkpoint's, so that a half-removed one is never taken for a damaged
            # one.
            doomed = temporary_name(path)
            os.rename(path, doomed)
            remove(doomed)
    remove_unfinished(folder)


def remove_unfinished(folder: pathlib.Path) -> None:
    if folder.is_dir():
        for path in folder.iterdir():
            if UNFINISHED.fullmatch(path.name):
                remove(path)


def average(paths: list[pathlib.Path]) -> dict[str, np.ndarray]:
    """The mean of the weights of several checkpoints (the Transformer: the last 5 or 20)."""
    if not paths:
        raise ArgumentError("average: there are no checkpoints")
    total: dict[str, np.ndarray] = {}
    for path in paths:
        for name, t in read(path).parts["weights"].items():
            array = t.numpy().astype(np.float64)
            if name in total and total[name].shape != array.shape:
                raise ArgumentError(
                    f"average: {name} is {list(array.shape)} in '{path}', {list(total[name].shape)} before"
                )
            total[name] = total.get(name, 0.0) + array
    return {name: (array / len(paths)).astype(np.float32) for name, array in total.items()}


def due(paths: Sequence[pathlib.Path]) -> list[pathlib.Path]:
    """Those that a run which is never stopped has, too."""
    return [path for path in paths if (state := _state(path)) and state.get("due", True)]


def _state(path: pathlib.Path) -> dict[str, Any]:
    """Empty where it cannot be read."""
    try:
        return read_part(path / STATE)
    except (FormatError, OSError):
        return {}


def digest(path: pathlib.Path) -> str:
    with open_regular(path) as f:
        return hashlib.file_digest(cast("io.BufferedReader", f), "sha256").hexdigest()


def write_json(path: pathlib.Path, values: Mapping[str, Any]) -> None:
    with atomic_write(path) as f:
        f.write((json.dumps(values, indent=1) + "\n").encode())


def read_part(path: pathlib.Path) -> dict[str, Any]:
    try:
        return read_json(path)
    except FileNotFoundError:
        raise FormatError(f"checkpoint '{path.parent}' has lost {path.name}") from None
