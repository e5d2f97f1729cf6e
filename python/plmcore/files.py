"""Files and directories that are either whole or absent, and JSON in them."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any, BinaryIO

from plmcore._core import FormatError


@contextlib.contextmanager
def named(path: str | os.PathLike) -> Iterator[None]:
    """Inside, an error of the system says which file it is about: writing to a full disk does not."""
    try:
        yield
    except OSError as e:
        if e.errno is not None and e.filename is None:
            e.filename = os.fspath(path)
        raise


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """A file that takes its name only when it is complete and on disk; after an error the old one, if any, is still there."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with named(path), open(temporary, "wb") as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


@contextlib.contextmanager
def atomic_directory(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """A directory to fill, whose files are synced by who writes them; it takes its name, and the place of an earlier one, when it is complete."""
    path = pathlib.Path(path)
    temporary, old = (path.with_name(f".{path.name}.{kind}") for kind in ("partial", "old"))
    for left in (temporary, old):
        shutil.rmtree(left, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        if path.exists():
            os.rename(path, old)
        os.rename(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def sync_file(path: str | os.PathLike) -> None:
    """Brings a file that was written to disk."""
    with open(path, "rb") as f:
        os.fsync(f.fileno())


def sync_folder(path: str | os.PathLike) -> None:
    """Brings the names in a folder to disk, as after a rename."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_json(path: pathlib.Path, absent: str = "") -> dict[str, Any]:
    """A JSON object from a file. FormatError says what is wrong with it; `absent` ends the sentence that it is not there."""
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(f"'{path.parent}' has no {path.name}{absent}") from None
    except (ValueError, RecursionError) as e:
        raise FormatError(f"'{path}' cannot be read: not valid JSON: {e}") from None
    if not isinstance(values, dict):
        raise FormatError(f"'{path}' cannot be read: it must hold one object, got a {type(values).__name__}")
    return values
