"""Files and directories that are either whole or absent, and JSON in them.

What is written, replaced, copied or read whole is a regular file:
a device would be replaced, a pipe would wait, and a link may lead anywhere. To read, links are followed;
to write or to copy from a model directory they are not.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import itertools
import json
import os
import pathlib
import shutil
import stat
import threading
from collections.abc import Iterator
from typing import IO, Any, BinaryIO

from plmcore._core import ArgumentError, FormatError

MAX_JSON_BYTES = 100_000_000  # of a file that is read whole into Python's objects
MAX_FILE_BYTES = 1 << 30  # of one that is read whole: a vocabulary


@contextlib.contextmanager
def named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Inside, an error of the system says which file it is about: writing to a full disk does not."""
    try:
        yield
    except OSError as e:
        if e.errno is not None and e.filename is None:
            e.filename = os.fspath(path)
        raise


_numbers = itertools.count()


class _Held(threading.local):
    """Directories that this thread has locked, as (device, inode)."""

    def __init__(self) -> None:
        self.places: set[tuple[int, int]] = set()


_held = _Held()


def temporary_name(path: pathlib.Path) -> pathlib.Path:
    """A name beside `path` that no other thread or process takes.

    One that a dead process has left may have it.
    """
    return path.with_name(f".{path.name}.{os.getpid()}-{next(_numbers)}.tmp")


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file that takes its name only when it is complete and on disk;
    after an error the old one, if any, is still there.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    check_replaceable(path)
    with named(path):
        temporary, file = _new_file(path)
    try:
        with named(path), file as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        check_replaceable(path)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _new_file(path: pathlib.Path) -> tuple[pathlib.Path, BinaryIO]:
    while True:
        temporary = temporary_name(path)
        with contextlib.suppress(FileExistsError):
            return temporary, open(temporary, "xb")


@contextlib.contextmanager
def atomic_directory(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """A directory to fill, whose files are synced by who writes them; it takes its name, and the place of an
    earlier one, when it is complete.

    Of several threads or processes that make the same directory, the last one stays.
    """
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    check_replaceable(path, directory=True)
    _remove_left(path)
    temporary, lock = _new_directory(path)
    try:
        yield temporary
        replaced = _take_place(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    finally:
        _unlock(lock)
    sync_folder(path.parent)
    for old in replaced:
        remove(old)


def _new_directory(path: pathlib.Path) -> tuple[pathlib.Path, int]:
    """With a lock that ends with the process: who finds one without may remove it."""
    while True:
        temporary = temporary_name(path)
        with contextlib.suppress(
            FileExistsError, FileNotFoundError
        ):  # another thread may remove it before it is locked
            temporary.mkdir()
            lock = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY)
            _lock(lock, wait=True)
            if temporary.is_dir():
                return temporary, lock
            _unlock(lock)


def _take_place(new: pathlib.Path, path: pathlib.Path) -> list[pathlib.Path]:
    """Renames; returns where earlier ones went."""
    replaced: list[pathlib.Path] = []
    while True:
        try:
            os.rename(new, path)
            return replaced
        except OSError as e:
            if e.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
        old = temporary_name(path)
        with contextlib.suppress(FileNotFoundError):  # another thread was faster
            os.rename(path, old)
            replaced.append(old)


def _remove_left(path: pathlib.Path) -> None:
    """What killed processes have left beside `path`."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*-*.tmp"):
        with contextlib.suppress(OSError):
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if _lock(lock, wait=False):
                    remove(left)
            finally:
                _unlock(lock)


def remove(path: pathlib.Path) -> None:
    """A file, a directory with what is in it, or a link, whose target stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def only_writer(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Inside, others that write this directory as a whole wait: its files come from one of them."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _place(lock) in _held.places:
            yield
            return
        _lock(lock, wait=True)
        try:
            yield
        finally:
            _held.places.discard(_place(lock))
    finally:
        os.close(lock)


def _lock(folder: int, wait: bool) -> bool:
    """Whether this thread now has the lock of an open directory.

    Some file systems have none: then who waits goes on without.
    """
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return wait
    if wait:
        _held.places.add(_place(folder))
    return True


def _unlock(folder: int) -> None:
    _held.places.discard(_place(folder))
    os.close(folder)


def _place(folder: int) -> tuple[int, int]:
    found = os.fstat(folder)
    return found.st_dev, found.st_ino


def check_replaceable(path: pathlib.Path, directory: bool = False) -> None:
    """ArgumentError where something has the name that a new file or directory must not replace."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISDIR(mode) if directory else stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "a file cannot take the place of a directory", os.fspath(path))
    wanted = "directories" if directory else "regular files"
    raise ArgumentError(f"'{path}' is {_kind(mode)}; only {wanted} are written: choose another name")


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a link",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFREG: "a file",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")


def open_own(path: pathlib.Path, mode: str, **options: Any) -> IO[Any]:
    """A file of ours that grows or is locked, opened in place.

    ArgumentError where it is a link, a device or a pipe.
    """
    check_replaceable(path)

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)

    file = open(path, mode, opener=opener, **options)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ArgumentError(
            f"'{path}' is not a regular file; only regular files are written: choose another name"
        )
    return file


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A file to read; FormatError for a pipe, which would wait for its writer, or a device,
    which may have no end.
    """

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK | os.O_CLOEXEC)

    file = open(path, "rb", opener=opener)
    mode = os.fstat(file.fileno()).st_mode
    if not stat.S_ISREG(mode):
        file.close()
        raise FormatError(f"'{os.fspath(path)}' cannot be read: it is {_kind(mode)}, not a regular file")
    return file


def read_bytes(path: str | os.PathLike[str], most: int = MAX_FILE_BYTES) -> bytes:
    """A whole file of at most `most` bytes."""
    with open_regular(path) as f:
        if (size := os.fstat(f.fileno()).st_size) > most:
            raise FormatError(
                f"'{os.fspath(path)}' cannot be read: it has {size} bytes, at most {most} are allowed"
            )
        return f.read(most)


def copy_inside(source: pathlib.Path, name: str, target: pathlib.Path) -> pathlib.Path:
    """Copies a file of the directory `source` into the directory `target`, complete or not at all.

    FormatError for a link that leads out of the directory: what it stands for is not a part of it, and a copy
    might be passed on. In the cache of a model hub, where snapshots/<revision>/<file> leads to blobs/<hash>,
    that is where files lie.
    """
    check_inside(source, name)
    folder = (target / name).parent
    folder.mkdir(parents=True, exist_ok=True)
    if not folder.resolve().is_relative_to(target.resolve()):
        raise ArgumentError(
            f"'{folder}' is a link out of '{target}'; files are written inside the directory only"
        )
    with open_regular(source / name) as f, atomic_write(target / name) as out:
        shutil.copyfileobj(f, out)
    return target / name


def check_inside(folder: pathlib.Path, name: str) -> None:
    """FormatError where a file of a directory is a link that leads out of it."""
    root, found = folder.resolve(), (folder / name).resolve()
    hub = root.parent.parent / "blobs" if root.parent.name == "snapshots" else None
    if not found.is_relative_to(root) and found.parent != hub:
        raise FormatError(
            f"'{folder / name}' is a link to '{found}', outside the directory; put the file itself "
            f"there to have it copied"
        )


def sync_file(path: str | os.PathLike[str]) -> None:
    """Brings a file that was written to disk."""
    with open(path, "rb") as f:
        os.fsync(f.fileno())


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Brings the names in a folder to disk, as after a rename."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def json_bytes(value: Any, indent: int | None = None) -> bytes:
    """JSON in UTF-8 with a newline at its end. Half a surrogate pair, which UTF-8 lacks, is escaped."""
    try:
        return (json.dumps(value, indent=indent, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(value, indent=indent) + "\n").encode()


def read_json(path: pathlib.Path, absent: str = "") -> dict[str, Any]:
    """A JSON object from a file.

    FormatError says what is wrong with it; `absent` ends the sentence that it is not there.
    """
    values = read_json_value(path, absent)
    if not isinstance(values, dict):
        raise FormatError(f"'{path}' cannot be read: it must hold one object, got a {type(values).__name__}")
    return values


def read_json_value(path: pathlib.Path, absent: str = "") -> Any:
    """What a JSON file holds."""
    try:
        return json.loads(read_bytes(path, MAX_JSON_BYTES))
    except FormatError:
        raise
    except FileNotFoundError:
        raise FileNotFoundError(f"'{path.parent}' has no {path.name}{absent}") from None
    except (ValueError, RecursionError) as e:
        raise FormatError(f"'{path}' cannot be read: not valid JSON: {e}") from None
