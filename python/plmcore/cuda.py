"""The device "cuda": whether it can be used, and if not, why.

It has not yet run on hardware; see docs/cuda.md.
"""

from plmcore import _core


def is_available() -> bool:
    """Whether tensors can live on device "cuda" in this process."""
    return not problem()


def problem() -> str:
    """One sentence that says why the device cannot be used and what to install; empty when it can."""
    return _core.device_problem("cuda")


def synchronize() -> None:
    """Waits for the device. A failure of work that was queued before is raised here."""
    _core.synchronize("cuda")
