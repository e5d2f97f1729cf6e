from __future__ import annotations

import os
from typing import Any


def writer(folder: str | os.PathLike[str]) -> Any:
    """Writes TensorBoard events into a folder: add_scalar(tag, value, step), close()."""
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise ModuleNotFoundError(
            "TensorBoard events need tensorboardX: pip install 'plmcore[tensorboard]'", name="tensorboardX"
        ) from None
    return SummaryWriter(os.fspath(folder))
