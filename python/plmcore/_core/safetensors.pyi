"""Safetensors files; plmcore.safetensors is for users."""

from collections.abc import Sequence

from plmcore._core import Tensor

def read(path: str, mapped: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]:
    """
    The tensors of a file by name, as they lie in it, and its metadata. The file is mapped, not copied, or read into memory.
    """

def write(path: str, tensors: dict[str, Tensor], metadata: dict[str, str] = {}) -> None:
    """Writes a file that appears under its name when it is complete."""

def laid_out_later(parts: Sequence[Tensor], transposed: bool) -> Tensor:
    """
    The parts' rows below each other, of transposed ones their columns: a matrix that is put together when its values are first looked at.
    """

def release(tensor: Tensor) -> None:
    """
    Takes a mapped tensor's pages out of memory until somebody looks at them again.
    """
