"""State dicts that torch.save wrote (pytorch_model.bin), alone or in checkpoints of training programs,
read without torch and without running anything the file names.

Two containers: a zip archive with data.pkl and one stored member per storage (since torch 1.6), and before
that a row of pickles followed by the storages. Storages are mapped; only tensors that are not contiguous in
theirs are copied.
"""

from __future__ import annotations

import dataclasses
import math
import mmap
import os
import pathlib
import struct
import zipfile
from collections.abc import Callable
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from plmcore._core import FormatError
from plmcore.files.whole import open_regular
from plmcore.formats import torch_pickle
from plmcore.formats.registry import Format
from plmcore.formats.torch_pickle import Storage, TensorRecord

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_START = b"\x80\x02\x8a\x0a" + LEGACY_MAGIC.to_bytes(10, "little")
MAX_AXES = 8

# A view can repeat elements (stride 0), and many tensors can share one storage: a small file can tell of any
# amount of data. What a file unfolds to may be this many times its size, and this much more.
MAX_TIMES, MAX_MORE = 8, 64 << 20


def read(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The tensors of a file by name. FormatError where it holds anything else, or is damaged."""
    return _read(pathlib.Path(path), _state_dict)


def read_checkpoint(
    path: str | os.PathLike[str], state: str
) -> tuple[dict[str, np.ndarray], dict[str | int, Any]]:
    """The tensors under the key `state` of a map, and what else that holds as plain data, with Fields for
    objects and TensorRecords for tensors. A file that is a state dict itself has nothing else.
    """
    rest: dict[str | int, Any] = {}

    def chosen(value: object) -> dict[str, TensorRecord]:
        if isinstance(value, dict) and isinstance(value.get(state), dict):
            rest.update({key: other for key, other in value.items() if key != state})
            return _state_dict(value[state])
        return _state_dict(value)

    return _read(pathlib.Path(path), chosen), rest


Choice: TypeAlias = Callable[[object], dict[str, TensorRecord]]  # of what a pickle holds


def _read(path: pathlib.Path, choose: Choice) -> dict[str, np.ndarray]:
    with open_regular(path) as f:
        start = f.read(len(LEGACY_START))
        if start[:4] != b"PK\x03\x04" and start != LEGACY_START:
            raise FormatError(
                f"'{path}' cannot be read: it is neither of the two formats of torch.save (a zip archive, "
                "or pickles that begin with torch's number)"
            )
        data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            records, blocks = _read_zip(f, data, choose) if start[:1] == b"P" else _read_legacy(data, choose)
            return _lay_out(records, blocks, data)
        except FormatError as e:
            raise FormatError(f"'{path}' cannot be read: {e}") from None


@dataclasses.dataclass(frozen=True)
class Block:
    """Where the bytes of a storage lie in the file."""

    start: int
    bytes: int


# ---- the two containers: records by name, blocks by the key of their storage ----


def _read_zip(f: Any, data: mmap.mmap, choose: Choice) -> tuple[dict[str, TensorRecord], dict[str, Block]]:
    try:
        with zipfile.ZipFile(f) as archive:
            infos = archive.infolist()
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        ValueError,
        OSError,
        struct.error,
        EOFError,
        OverflowError,
    ) as e:
        raise FormatError(f"the zip archive is damaged: {e}") from None
    members = {info.filename: info for info in infos}
    if len(members) < len(infos):
        raise FormatError("the zip archive has two members of one name")
    pickles = [name for name in members if name.count("/") == 1 and name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise FormatError(f"the zip archive must have one data.pkl in a folder, got {len(pickles)}")
    folder = pickles[0][: -len("data.pkl")]

    def block(name: str) -> Block:
        return _stored(members[name], data)

    if folder + "byteorder" in members:
        order = block(folder + "byteorder")
        if bytes(data[order.start : order.start + min(order.bytes, 16)]) != b"little":
            raise FormatError("it was written on a big-endian machine, which plmcore does not read")
    pickle = block(pickles[0])
    if pickle.bytes > torch_pickle.MAX_BYTES:
        raise FormatError(f"data.pkl has {pickle.bytes} bytes, at most {torch_pickle.MAX_BYTES} are allowed")
    value, _ = torch_pickle.load(bytes(data[pickle.start : pickle.start + pickle.bytes]))
    records = choose(value)
    blocks = {}
    for key in {r.storage.key for r in records.values()}:
        name = f"{folder}data/{key}"
        if name not in members:
            raise FormatError(f"the storage {name[:100]!r} is missing")
        blocks[key] = block(name)
    return records, blocks


def _stored(info: zipfile.ZipInfo, data: mmap.mmap) -> Block:
    """The bytes of a member, which is neither compressed nor encrypted: torch.save does neither."""
    name = info.filename[:100]
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.compress_size != info.file_size:
        raise FormatError(f"the member {name!r} is compressed or encrypted")
    header = bytes(data[info.header_offset : info.header_offset + 30]) if info.header_offset >= 0 else b""
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise FormatError(f"the member {name!r} does not begin where the archive says")
    name_bytes, extra_bytes = struct.unpack("<HH", header[26:30])
    start = info.header_offset + 30 + name_bytes + extra_bytes
    if start + info.file_size > len(data):
        raise FormatError(
            f"it is cut off: the member {name!r} ends at byte {start + info.file_size}, the file at "
            f"{len(data)}"
        )
    return Block(start, info.file_size)


def _read_legacy(data: mmap.mmap, choose: Choice) -> tuple[dict[str, TensorRecord], dict[str, Block]]:
    _, at = torch_pickle.load(data)
    version, at = torch_pickle.load(data, at)
    if version != 1001:
        raise FormatError(
            f"its format must be 1001, got {str(version)[:100] if isinstance(version, int) else 'no number'}"
        )
    system, at = torch_pickle.load(data, at)
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise FormatError("it was written on a big-endian machine, which plmcore does not read")
    storages: dict[str, Storage] = {}
    value, at = torch_pickle.load(data, at, storages)
    keys, at = torch_pickle.load(data, at)
    records = choose(value)
    if not isinstance(keys, list) or not all(isinstance(k, str) for k in keys):
        raise FormatError("the keys of its storages must be a list of texts")
    blocks: dict[str, Block] = {}
    for key in keys:  # each: int64 number of elements, elements
        if key not in storages or key in blocks:
            raise FormatError(f"no tensor, or more than one block, belongs to the storage {key[:100]!r}")
        if len(data) - at < 8:
            raise FormatError(f"it is cut off before the storage {key[:100]!r}")
        (elements,) = struct.unpack("<q", data[at : at + 8])
        blocks[key] = Block(at + 8, elements * _dtype(storages[key].dtype).itemsize)
        at += 8 + blocks[key].bytes
        if elements < 0 or at > len(data):
            raise FormatError(f"it is cut off in the storage {key[:100]!r}: it has {elements} elements")
    for key in storages:
        if key not in blocks:
            raise FormatError(f"the storage {key[:100]!r} is missing")
    return records, blocks


def _state_dict(value: object) -> dict[str, TensorRecord]:
    if not isinstance(value, dict):
        raise FormatError(f"it must hold a state dict, got a {type(value).__name__}")
    for name, tensor in value.items():
        if not isinstance(name, str) or not isinstance(tensor, TensorRecord):
            raise FormatError(
                f"it must hold a map of names to tensors and nothing else, got a "
                f"{type(tensor).__name__} as {str(name)[:100]!r}; a checkpoint of a training program wants "
                f"plmcore convert --family"
            )
    return value


# ---- tensors over the storages ----


def _lay_out(
    records: dict[str, TensorRecord], blocks: dict[str, Block], data: mmap.mmap
) -> dict[str, np.ndarray]:
    elements: dict[Storage, np.ndarray] = {}
    tensors: dict[str, np.ndarray] = {}
    total = 0
    for name, record in records.items():
        try:
            total += math.prod(record.size) * _dtype(record.storage.dtype).itemsize
            if total > MAX_TIMES * len(data) + MAX_MORE:
                raise FormatError(
                    f"the tensors up to here have {total} bytes, far more than the file with its {len(data)}"
                )
            if record.storage not in elements:
                elements[record.storage] = _elements(record.storage, blocks[record.storage.key], data)
            tensors[name] = _view(record, elements[record.storage])
        except FormatError as e:
            raise FormatError(f"the tensor {name[:100]!r}: {e}") from None
    return tensors


def _elements(storage: Storage, block: Block, data: mmap.mmap) -> np.ndarray:
    dtype = _dtype(storage.dtype)
    if block.bytes != storage.whole * dtype.itemsize:
        raise FormatError(f"its storage must have {storage.whole} {storage.dtype}, got {block.bytes} bytes")
    if storage.count == 0:
        return np.empty(0, dtype)
    start = block.start + storage.start * dtype.itemsize
    if storage.dtype == "bool":  # whatever the byte is
        return np.frombuffer(data, np.uint8, storage.count, start) != 0
    return np.frombuffer(data, dtype, storage.count, start)


def _view(record: TensorRecord, elements: np.ndarray) -> np.ndarray:
    size, stride, offset = record.size, record.stride, record.offset
    if len(size) > MAX_AXES:
        raise FormatError(f"it has {len(size)} axes, at most {MAX_AXES} are allowed")
    count = math.prod(size)
    if count == 0:
        if math.prod(n for n in size if n) >= 1 << 46:
            raise FormatError(f"its shape {list(size)} is too large")
        return np.empty(size, elements.dtype)
    last = offset + sum((n - 1) * s for n, s in zip(size, stride))
    if last >= len(elements):
        raise FormatError(f"it reaches element {last} of a storage of {len(elements)}")
    contiguous, step = True, 1
    for n, s in zip(reversed(size), reversed(stride)):
        contiguous &= n == 1 or s == step
        step *= n
    if contiguous:
        return elements[offset : offset + count].reshape(size)
    strides = [s * elements.itemsize if n > 1 else 0 for n, s in zip(size, stride)]
    view = np.lib.stride_tricks.as_strided(elements[offset:], size, strides, writeable=False)
    return np.ascontiguousarray(view)


def _dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


FORMAT = Format(
    known=lambda start: start[:4] == b"PK\x03\x04" or start.startswith(LEGACY_START),
    endings=(".bin", ".pt", ".pth"),
    read=lambda path, mapped: (read(path), {}),
    file="pytorch_model.bin",
)
