"""Safetensors files, whole or in shards with an index. The native side: plmcore/safetensors.h."""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
from collections.abc import Callable, Mapping

import numpy as np

from plmcore import _core
from plmcore._core import Tensor
from plmcore.files.whole import atomic_write
from plmcore.formats import registry, shards
from plmcore.formats.registry import Format
from plmcore.formats.shards import INDEX
from plmcore.runtime.kinds import checked

FILE = "model.safetensors"
_ALIGN = 64
_FORMAT_NAMES = {
    "float64": "F64", "float32": "F32", "bfloat16": "BF16", "float16": "F16",
    "int64": "I64", "int32": "I32", "int8": "I8", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
_BYTES = {
    "float64": 8,
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "int64": 8,
    "int32": 4,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}


@checked
def read(path: str | os.PathLike[str], *, mapped: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Reads a file, the shards of an index, or a model directory; returns tensors by name, and the metadata.

    Files are mapped, not copied: tensors share their memory until something writes to them, which never
    reaches the file. Who cuts a mapped file short (a download that starts again, a network disk that goes
    away) ends the process with SIGBUS: with mapped=False files are read into memory, and nothing that happens
    to them later matters.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        path = next((path / name for name in FORMAT.files if (path / name).exists()), path / FILE)
        if not path.exists():
            registry.weights_in(path.parent)  # says what the directory has
    return registry.read_as("safetensors", path, mapped)


@checked
def write(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Tensor | np.ndarray],
    metadata: Mapping[str, str] | None = None,
    max_shard_bytes: int | None = None,
    aligned: bool = False,
) -> list[pathlib.Path]:
    """Writes one file, or shards and their index beside where it would be, of at most `max_shard_bytes` each;
    returns their paths.

    aligned: one file has its tensors in the order of write_each, instead of the reference's.

    A directory as `path` means its model.safetensors. Each file appears when it is complete. What an earlier
    call left under the same name in the other form is taken away: a reader would not know which is meant.
    """
    path = pathlib.Path(path)
    if path.is_dir():
        path = path / FILE
    if max_shard_bytes is not None and max_shard_bytes < 1:
        raise _core.ArgumentError(f"safetensors: max_shard_bytes must be at least 1, got {max_shard_bytes}")
    ours = {name: registry.as_tensor("safetensors", name, value) for name, value in tensors.items()}
    index = path.with_name(path.name + INDEX)
    path.parent.mkdir(parents=True, exist_ok=True)
    groups = (
        shards.split({name: t.nbytes for name, t in ours.items()}, max_shard_bytes) if max_shard_bytes else []
    )
    if len(groups) <= 1:
        if aligned:
            write_each(
                path,
                {n: (t.dtype, tuple(map(int, t.shape))) for n, t in ours.items()},
                ours.__getitem__,
                metadata,
            )
        else:
            _core.safetensors.write(os.fspath(path), ours, dict(metadata or {}))
        index.unlink(missing_ok=True)
        _remove_shards(path, keep=())
        return [path]

    files = [
        path.with_name(shards.file_name(path.stem, path.suffix, k + 1, len(groups)))
        for k in range(len(groups))
    ]
    if any(file.exists() for file in files):
        # from here on the old shards are not whole: better no index than one over a mixture
        index.unlink(missing_ok=True)
    for file, names in zip(files, groups):
        _core.safetensors.write(os.fspath(file), {name: ours[name] for name in names}, dict(metadata or {}))
    weight_map = {name: file.name for file, names in zip(files, groups) for name in names}
    shards.write_index(index, weight_map, sum(t.nbytes for t in ours.values()))
    path.unlink(missing_ok=True)  # readers look for it first
    _remove_shards(path, keep=files)
    return [*files, index]


def write_each(
    path: str | os.PathLike[str],
    specs: Mapping[str, tuple[str, tuple[int, ...]]],
    value: Callable[[str], Tensor],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes one file of tensors (dtype, shape) by name, of which `value` makes one at a time: no more than
    one is in memory.

    Tensors whose size is a multiple of 64 bytes come first and so begin at one; those of the same alignment
    in the order of their names.
    """
    sizes = {name: _BYTES[dtype] * math.prod(shape) for name, (dtype, shape) in specs.items()}
    order = sorted(specs, key=lambda n: (sizes[n] % _ALIGN != 0, -_BYTES[specs[n][0]], n))
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name in order:
        dtype, shape = specs[name]
        begin, end = end, end + sizes[name]
        header[name] = {"dtype": _FORMAT_NAMES[dtype], "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGN)
    with atomic_write(path) as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            tensor = value(name)
            if (tensor.dtype, tuple(tensor.shape)) != (specs[name][0], tuple(specs[name][1])):
                raise _core.ArgumentError(
                    f"safetensors: {name!r} must be {specs[name][0]} {list(specs[name][1])}, got "
                    f"{tensor.dtype} {list(tensor.shape)}"
                )
            f.write(tensor.numpy().reshape(-1).view(np.uint8).data)


def _remove_shards(path: pathlib.Path, keep: list[pathlib.Path] | tuple[()]) -> None:
    pattern = re.compile(re.escape(path.stem) + r"-\d{5}-of-\d{5}" + re.escape(path.suffix))
    for file in path.parent.iterdir():
        if pattern.fullmatch(file.name) and file not in keep:
            file.unlink()


def _read_file(path: pathlib.Path, mapped: bool) -> tuple[dict[str, Tensor], dict[str, str]]:
    return _core.safetensors.read(os.fspath(path), mapped)


FORMAT = Format(
    known=lambda start: start[8:9] == b"{",  # behind the length of the header
    endings=(".safetensors",),
    read=_read_file,
    write=write,
    file=FILE,
    loads=True,
)
