"""Safetensors files; plmcore.safetensors is for users."""

from plmcore._core import Tensor

def read(path: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """
    The tensors of a file by name, as they lie in it, and its metadata. The file is mapped, not copied.
    """

def write(path: str, tensors: dict[str, Tensor], metadata: dict[str, str] = {}) -> None:
    """Writes a file that appears under its name when it is complete."""

def release(tensor: Tensor) -> None:
    """
    Takes a mapped tensor's pages out of memory until somebody looks at them again.
    """
