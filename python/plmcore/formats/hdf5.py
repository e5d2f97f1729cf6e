"""Arrays of hdf5 files, by the path of each in the file (ELMo's weights). Needs h5py, the extra `elmo`."""

from __future__ import annotations

import pathlib
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from plmcore._core import FormatError
from plmcore.formats.registry import Format

START = b"\x89HDF\r\n\x1a\n"
MOST = 1100  # times smaller than the numbers that it holds an array may be stored: zlib's best, and a little


def known(start: bytes) -> bool:
    return start.startswith(START)


def read(path: pathlib.Path, mapped: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """All arrays of numbers. Links to other files are not followed."""
    h5py = library(path)
    found: dict[str, np.ndarray] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = array(item, name, h5py)

    try:
        with h5py.File(path, "r") as f:
            f.visititems(visit)
    except FormatError as e:
        raise FormatError(f"'{path}' cannot be read: {e}") from None
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as e:
        if isinstance(e, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        text = str(e).splitlines()
        raise FormatError(
            f"'{path}' cannot be read: it is no whole hdf5 file: {text[0] if text else e!r}"
        ) from None
    if not found:
        raise FormatError(f"'{path}' cannot be read: it has no arrays")
    return found, {}


def array(item: Any, name: str, h5py: ModuleType) -> np.ndarray:
    """The numbers of a dataset that lie in the file itself."""
    if item.dtype.kind not in "fiu" or item.shape is None:
        raise FormatError(f"{name} is no array of numbers")
    if item.is_virtual or item.external:
        raise FormatError(f"{name} lies in another file")
    if item.nbytes > MOST * item.id.get_storage_size() + 4096:
        raise FormatError(
            f"{name} is {list(item.shape)}, and only {item.id.get_storage_size()} bytes are there"
        )
    values = np.asarray(item[()])
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def library(path: pathlib.Path) -> ModuleType:
    try:
        return import_module("h5py")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"'{path}' is a file of hdf5, which needs h5py, and that is not installed: pip install "
            f"'plmcore[elmo]'",
            name="h5py",
        ) from None


FORMAT = Format(known=known, endings=(".hdf5", ".h5"), read=read)
