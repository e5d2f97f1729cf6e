from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import Any


def writer(folder: str | os.PathLike[str]) -> Any:
    """Writes TensorBoard events into a folder: add_scalar(tag, value, step), close()."""
    return library().SummaryWriter(os.fspath(folder))


def library() -> ModuleType:
    try:
        return import_module("tensorboardX")
    except ImportError:
        raise ModuleNotFoundError(
            "TensorBoard events need tensorboardX: pip install 'plmcore[tensorboard]'", name="tensorboardX"
        ) from None
