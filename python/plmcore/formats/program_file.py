"""Files of traced programs with their weights (.plm): docs/program-format.md. C++ writes and reads them."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping

from plmcore import _core
from plmcore.formats.registry import Format

MAGIC = b"\x89PLM\r\n\x1a\n"


def read(path: str | os.PathLike[str], mapped: bool = True) -> _core.Model:
    """The programs of a file."""
    return _core.Model.load(os.fspath(path), mapped)


def write(
    path: str | os.PathLike[str],
    programs: Mapping[str, _core.Program],
    card: str = "",
    tensors: Mapping[str, _core.Tensor] = {},
) -> None:
    """card: what the file says of the model, as JSON; tensors: those that it names."""
    _core.Model.save(os.fspath(path), list(programs.items()), card, list(tensors.items()))


def describe(path: pathlib.Path) -> dict[str, str]:
    """The inputs and outputs of each program."""

    def listed(values: list[tuple[str, tuple[int | _core.Dim, ...], str]]) -> str:
        return ", ".join(f"{name} {dtype} [{', '.join(map(str, shape))}]" for name, shape, dtype in values)

    model = read(path)
    programs = {name: model.program(name) for name in model.names}
    return {name: f"{listed(p.inputs)} -> {listed(p.outputs)}" for name, p in programs.items()}


FORMAT = Format(known=lambda start: start.startswith(MAGIC), endings=(".plm",), describe=describe)
