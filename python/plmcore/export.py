"""Programs to files and back. The format: docs/program-format.md; C++ reads it with plmcore::Model::load."""

from __future__ import annotations

import os
from collections.abc import Mapping

from plmcore import _core


def export(programs: _core.Program | Mapping[str, _core.Program], path: str | os.PathLike[str]) -> None:
    """Writes one traced program, or several by name, with the weights they share. A lone program is named "main"."""
    by_name = programs if isinstance(programs, Mapping) else {"main": programs}
    for name, program in by_name.items():
        if not isinstance(program, _core.Program):
            raise _core.DTypeError(
                f"export: {name!r} must be a Program, which plm.trace(model, input_ids=plm.spec(...)) makes, got {type(program).__name__}"
            )
    _core.Model.save(os.fspath(path), list(by_name.items()))


def load_programs(path: str | os.PathLike[str]) -> dict[str, _core.Program]:
    """The programs of a file by name. The file is mapped, not copied; it runs no code of its own beside plmcore's ops."""
    model = _core.Model.load(os.fspath(path))
    return {name: model.program(name) for name in model.names}


def load_program(path: str | os.PathLike[str], name: str | None = None) -> _core.Program:
    """One program of a file; `name` may be left out where there is only one."""
    model = _core.Model.load(os.fspath(path))
    if name is None:
        if len(model.names) != 1:
            raise ValueError(
                f"{os.fspath(path)!r} has the programs {', '.join(map(repr, model.names))}; name the one to load"
            )
        name = model.names[0]
    return model.program(name)
