"""Computing with a model that others may be training."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from plmcore import _core


class _Scopes(threading.local):
    open = 0


_scopes = _Scopes()


@contextlib.contextmanager
def inference() -> Iterator[None]:
    """Inside, modules on this thread compute as in eval mode, whatever mode they are in,
    and ops are not recorded.

    No module is changed: another thread may train the same model meanwhile.
    """
    recorded = _core.set_grad_enabled(False)
    _scopes.open += 1
    try:
        yield
    finally:
        _scopes.open -= 1
        _core.set_grad_enabled(recorded)


def infers() -> bool:
    """Whether this thread is inside inference()."""
    return _scopes.open > 0
