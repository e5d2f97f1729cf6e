"""File formats, each one module, behind one registry: plmcore.formats.registry."""

from plmcore.formats import safetensors
from plmcore.formats.registry import FORMATS, Format, register

__all__ = ["FORMATS", "Format", "register", "safetensors"]
