"""File formats: safetensors, files of torch.save, weights in several files."""

from plmcore.formats import safetensors

__all__ = ["safetensors"]
