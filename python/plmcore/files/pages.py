"""Who draws the pages of results: rooms below the drawings know a drawer by its name only.

The package's face (plmcore/__init__.py) says which function a name stands for, as "module:function".
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

DRAWERS: dict[str, str] = {}


def drawer(name: str) -> Callable[..., None]:
    """The function that writes the page of a result to a path: drawer("attention")(path, found)."""
    module, _, function = DRAWERS[name].partition(":")
    found: Callable[..., None] = getattr(import_module(module), function)
    return found
