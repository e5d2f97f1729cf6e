"""Files as read-only arrays that the kernel loads page by page, with a limit on what stays resident.

Pages once read count as this process' memory although the kernel could drop them at any time. `trim` hands
them back: they stay in the kernel's cache, and reading one again costs a soft page fault.
"""

from __future__ import annotations

import mmap
import os
import pathlib
import weakref

import numpy as np

from plmcore.files.whole import open_regular

RESIDENT = 64 << 20  # bytes of mapped files that may stay before trim drops them

_open: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
_floor = 0  # what else is mapped: libraries


def array(path: str | os.PathLike[str], dtype: np.dtype) -> np.ndarray:
    """All of a file as an array. It must not be changed while the array lives; replacing it is fine."""
    with open_regular(path) as f:
        if os.fstat(f.fileno()).st_size == 0:  # cannot be mapped
            return np.empty(0, dtype)
        pages = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
    _open.add(pages)
    return np.frombuffer(pages, dtype)


def trim() -> None:
    """Drops the pages of all arrays from this process, if they take more than RESIDENT bytes."""
    global _floor
    pages = list(_open)
    if sum(map(len, pages)) <= RESIDENT or resident() <= _floor + RESIDENT:
        return
    for each in pages:
        each.madvise(mmap.MADV_DONTNEED)
    _floor = resident()


def peak() -> int:
    """The most bytes that this process ever had in memory."""
    # ru_maxrss would count the process that started this one.
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) * 1024


def resident() -> int:
    """Bytes of mapped files in this process' memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[2]) * mmap.PAGESIZE
