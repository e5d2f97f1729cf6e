"""Which run trains a family: most are trained by a tape over batches (train/pretraining.py), those of this
table by a trainer of their own. docs/adding-a-trainer.md.
"""

from __future__ import annotations

import os
import pathlib
from importlib import import_module
from typing import cast

from plmcore import models
from plmcore._core import ArgumentError
from plmcore.train import recipes, run_directory, settings
from plmcore.train.run import Run

# family -> the class of its run, or where it is: module:class
TRAINERS: dict[str, str | type[Run]] = {
    "glove": "plmcore.vectors.pretraining:GloveRun",
    "word2vec": "plmcore.vectors.pretraining:Word2VecRun",
}


def register(family: str, run: type[Run]) -> None:
    """Lets plm.pretrain and `plmcore pretrain` train `family` by a run of its own, in this process."""
    if TRAINERS.get(family, run) is not run or family in models.FAMILIES:
        raise ArgumentError(f"there is a family {family!r} already; a trainer needs a name of its own")
    TRAINERS[family] = run


def trainer(family: str) -> type[Run] | None:
    """The class of a family's run; None where a tape over batches trains it."""
    found = TRAINERS.get(family)
    if isinstance(found, str):
        module, _, name = found.partition(":")
        return cast(type[Run], getattr(import_module(module), name))
    return found


def family_of(
    family: str | None, out: str | os.PathLike[str], config: str | os.PathLike[str] | None = None
) -> str:
    """The family that is given, that of the run in `out`, or that of a config.toml; "" where none is told."""
    if family is None:
        file = pathlib.Path(config) if config else pathlib.Path(out) / run_directory.CONFIG
        family = settings.read(file).get("run", {}).get("family") if file.is_file() else None
    return family if isinstance(family, str) else ""


def names() -> list[str]:
    """All that plm.pretrain trains."""
    return [*recipes.names(), *TRAINERS]
