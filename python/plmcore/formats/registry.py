"""The file formats, by name: how a file of each is known, read and written. docs/adding-a-format.md.

A format is one module, which declares FORMAT, and one line of FORMATS. In a model directory the name of a
file says its format, elsewhere its first bytes do.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from plmcore import _core
from plmcore._core import ArgumentError, FormatError, Tensor
from plmcore.files.whole import open_regular
from plmcore.formats import shards

Arrays: TypeAlias = Mapping[str, "Tensor | np.ndarray"]
START = 64  # bytes of a file that a format may look at
FORMATS = {  # name -> module of this package, or whole name of a registered one
    "safetensors": "safetensors",
    "torch": "torch_file",
    "program": "program_file",
    "word2vec-bin": "word2vec_binary",
    "word2vec-text": "word2vec_text",
    "glove": "glove_text",
    "hdf5": "hdf5",
}
_MODULES: dict[str, ModuleType] = {}


@dataclass(frozen=True, kw_only=True)
class Format:
    """What a module of a format declares.

    known: whether a file is of it, by its first START bytes. endings: of names of files that are of it. read:
    path, mapped -> tensors by name, and the metadata. write: path, tensors, metadata, max_shard_bytes -> the
    files that it wrote. file: what a model directory calls it. loads: plm.load reads it there; else `plmcore
    convert` turns it into one that plm.load reads. describe: what `plmcore info` says of a file that holds no
    tensors, by name.
    """

    known: Callable[[bytes], bool]
    endings: tuple[str, ...]
    read: Callable[[pathlib.Path, bool], tuple[Arrays, Mapping[str, str]]] | None = None
    write: Callable[..., list[pathlib.Path]] | None = None
    file: str | None = None
    loads: bool = False
    describe: Callable[[pathlib.Path], Mapping[str, str]] | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """Its names in a model directory: of one file, and of the index of several."""
        return () if self.file is None else (self.file, self.file + shards.INDEX)


def register(name: str, module: ModuleType) -> None:
    """Adds the format of a module that declares FORMAT, in this process."""
    found = getattr(module, "FORMAT", None)
    if not isinstance(found, Format):
        raise ArgumentError(
            f"{module.__name__} declares no format: FORMAT must be a plmcore.formats.Format, got "
            f"{found!r:.60}; docs/adding-a-format.md shows one"
        )
    if FORMATS.get(name, module.__name__) != module.__name__:
        raise ArgumentError(f"the format {name!r} is that of {FORMATS[name]}: register another name")
    FORMATS[name] = module.__name__
    _MODULES[module.__name__] = module


def get(name: str) -> Format:
    """A format by its name."""
    if name not in FORMATS:
        raise ArgumentError(f"there is no format {name!r}; one of {', '.join(FORMATS)}")
    module = FORMATS[name]
    if module not in _MODULES:
        _MODULES[module] = import_module(f"plmcore.formats.{module}")
    found: Format = _MODULES[module].FORMAT
    return found


def every() -> Iterator[tuple[str, Format]]:
    """Names and formats, each imported when its turn comes."""
    return ((name, get(name)) for name in list(FORMATS))


def of_file(path: pathlib.Path) -> str:
    """The name of a file's format: by how it begins, else by how its name ends."""
    with open_regular(path) as f:
        start = f.read(START)
    found = next((name for name, format in every() if format.known(start)), None)
    found = found or next((n for n, format in every() if path.name.endswith(format.endings)), None)
    if found is None:
        raise FormatError(f"'{path}' cannot be read: it is of none of the formats {', '.join(FORMATS)}")
    return found


def weights_in(folder: pathlib.Path, loads: bool = True) -> tuple[str, pathlib.Path]:
    """The format and the path of a model directory's weights: one file or, where there is none, an index.
    loads=False: of those that have to be converted.
    """
    for name, format in every():
        for file in format.files if format.loads == loads else ():
            if (folder / file).exists():
                return name, folder / file
    wanted = next(f for _, f in every() if f.file and f.loads == loads)
    other = next((file for _, f in every() for file in f.files if (folder / file).exists()), None)
    answer = "`plmcore convert` turns into one" if loads else "needs no conversion"
    hint = f"; it has {other}, which {answer}" if other else ""
    raise FileNotFoundError(f"'{folder}' has no {' and no '.join(wanted.files)}{hint}")


def read(
    path: str | os.PathLike[str], *, mapped: bool = True, loads: bool = True
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file, of an index's files or of a model directory, and the metadata."""
    path = pathlib.Path(path)
    if path.is_dir():
        name, path = weights_in(path, loads)
    elif path.name.endswith(shards.INDEX):
        stem = path.name.removesuffix(shards.INDEX)
        name = next((n for n, f in every() if f.read and stem.endswith(f.endings)), "safetensors")
    else:
        name = of_file(path)
    return read_as(name, path, mapped)


def read_as(name: str, path: pathlib.Path, mapped: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]:
    """A file, or the files of an index, in this format."""
    reader = get(name).read
    if reader is None:
        raise FormatError(f"'{path}' is a {name} file, which holds no tensors by name")
    metadata: dict[str, str] = {}

    def one(file: pathlib.Path) -> dict[str, Tensor]:
        tensors, found = reader(file, mapped)
        metadata.update({key: text for key, text in found.items() if key not in metadata})
        return {key: as_tensor(name, key, value) for key, value in tensors.items()}

    tensors = shards.read_files(path, one) if path.name.endswith(shards.INDEX) else one(path)
    return tensors, metadata


def write(
    path: str | os.PathLike[str],
    tensors: Arrays,
    metadata: Mapping[str, str] | None = None,
    max_shard_bytes: int | None = None,
    **options: Any,
) -> list[pathlib.Path]:
    """Writes a file in the format of its name's ending, or the weights of a model directory; returns what was
    written.
    """
    path = pathlib.Path(path)
    able = [f for _, f in every() if f.write and (path.name.endswith(f.endings) or f.loads)]
    chosen = next((f for f in able if path.name.endswith(f.endings)), able[0])
    assert chosen.write is not None
    return chosen.write(path, tensors, metadata, max_shard_bytes, **options)


def is_file_name(path: pathlib.Path) -> bool:
    """Whether a path is named as a file that `write` can write, and not as a directory."""
    return any(f.write and path.name.endswith(f.endings) for _, f in every())


def as_tensor(format: str, name: str, value: Tensor | np.ndarray) -> Tensor:
    """Shares the memory of an array where it can."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        raise _core.DTypeError(
            f"{format}: {name!r} must be a Tensor or a NumPy array, got {type(value).__name__}"
        )
    shares = value.flags.c_contiguous and value.flags.aligned and value.dtype.isnative
    return _core.from_numpy(value) if shares else Tensor(value)
