"""The command `plmcore` as users call it: the one that `pip install` put beside the interpreter or, from a
checkout, `python -m plmcore`.
"""

import importlib.metadata
import pathlib
import sys
import sysconfig


def is_installed() -> bool:
    try:
        importlib.metadata.distribution("plmcore")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


PATH = pathlib.Path(sysconfig.get_path("scripts")) / "plmcore"
COMMAND = [str(PATH)] if is_installed() else [sys.executable, "-m", "plmcore"]
