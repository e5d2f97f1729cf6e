"""Weights in several files of one folder: the index that says which file holds which tensor.

An index is {"metadata": {"total_size": bytes}, "weight_map": {tensor: file, ...}}, named after the file it
stands for: model.safetensors.index.json, pytorch_model.bin.index.json.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterable
from typing import TypeVar

from plmcore._core import FormatError
from plmcore.files.whole import atomic_write, read_bytes

T = TypeVar("T")

INDEX = ".index.json"
MAX_INDEX_BYTES = 100_000_000
MAX_FILES = 10_000  # of an index; the largest published models have some hundreds


def file_name(stem: str, suffix: str, number: int, count: int) -> str:
    """The name of shard `number`, from 1: model-00001-of-00003.safetensors."""
    return f"{stem}-{number:05}-of-{count:05}{suffix}"


def read_index(path: pathlib.Path) -> dict[str, list[str]]:
    """The tensors of each file, in the order of the index.

    FormatError for one that breaks a rule or names a file elsewhere.
    """
    document = _read_json(path)
    if not isinstance(document, dict) or not isinstance(document.get("weight_map"), dict):
        raise FormatError(f"'{path}' cannot be read: it must be an object with an object 'weight_map'")
    files: dict[str, list[str]] = {}
    for tensor, file in document["weight_map"].items():
        if not isinstance(file, str):
            raise FormatError(
                f"'{path}' cannot be read: the file of {_shown(tensor)} must be a text, got {_shown(file)}"
            )
        if file in ("", ".", "..") or any(c in file for c in "/\\\0"):
            raise FormatError(
                f"'{path}' cannot be read: {_shown(tensor)} lies in {_shown(file)}, which must be the "
                f"name of a file beside the index"
            )
        files.setdefault(file, []).append(tensor)
        if len(files) > MAX_FILES:
            raise FormatError(f"'{path}' cannot be read: it lists more than {MAX_FILES} files")
    return files


def read_files(index: pathlib.Path, read: Callable[[pathlib.Path], dict[str, T]]) -> dict[str, T]:
    """The tensors of every file of an index.

    One that is in two files, or missing from the file it should be in, is an error.
    """
    files = read_index(index)
    absent = [file for file in files if not (index.parent / file).exists()]
    if absent:
        raise FileNotFoundError(
            f"'{index}' lists {_listed(absent)}, which the folder does not have; was everything copied?"
        )
    tensors: dict[str, T] = {}
    origin: dict[str, str] = {}
    for file, names in files.items():
        found = read(index.parent / file)
        missing = [name for name in names if name not in found]
        if missing:
            raise FormatError(
                f"'{index}' says that {_listed(missing)} is in '{file}', which does not hold it"
            )
        for name, tensor in found.items():
            if name in tensors:
                raise FormatError(
                    f"'{index}' cannot be read: '{origin[name]}' and '{file}' both hold {_shown(name)}"
                )
            tensors[name], origin[name] = tensor, file
    return tensors


def write_index(path: pathlib.Path, weight_map: dict[str, str], total_size: int) -> None:
    document = {"metadata": {"total_size": total_size}, "weight_map": dict(sorted(weight_map.items()))}
    with atomic_write(path) as f:
        f.write((json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())


def split(sizes: dict[str, int], most: int) -> list[list[str]]:
    """Names in groups of at most `most` bytes, in their order; a larger one stands alone."""
    groups: list[list[str]] = [[]]
    filled = 0
    for name, size in sizes.items():
        if groups[-1] and filled + size > most:
            groups.append([])
            filled = 0
        groups[-1].append(name)
        filled += size
    return groups


def _read_json(path: pathlib.Path) -> object:
    data = read_bytes(path, MAX_INDEX_BYTES)
    try:
        return json.loads(data.decode(), object_pairs_hook=_members_once)
    except FormatError as e:
        raise FormatError(f"'{path}' cannot be read: {e}") from None
    except RecursionError:
        raise FormatError(f"'{path}' cannot be read: it is nested too deeply") from None
    except ValueError as e:
        raise FormatError(f"'{path}' cannot be read: not valid JSON: {e}") from None


def _members_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise FormatError(f"{_shown(twice)} is listed twice")
    return members


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:100] + "..."


def _listed(names: Iterable[str], most: int = 5) -> str:
    names = list(names)
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(_shown, names[:most])) + rest
