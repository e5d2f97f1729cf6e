from __future__ import annotations

from importlib import import_module
from types import ModuleType

PACKAGES = {"sklearn": "scikit-learn", "scipy": "scipy", "sacrebleu": "sacrebleu", "seqeval": "seqeval"}


def needed(module: str, metric: str) -> ModuleType:
    """A library of the extra `eval`, imported when a metric first asks for it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as e:
        package = PACKAGES.get(str(e.name).partition(".")[0])
        if package is None:
            raise
        raise ModuleNotFoundError(
            f"{metric} needs {package}, which is not installed: pip install 'plmcore[eval]'", name=e.name
        ) from None
