"""Text to ids, from the tokenizer files of a model directory."""

from plmcore.tokenizers.tokenizer import Batch, Tokenizer, load_tokenizer

__all__ = ["Batch", "Tokenizer", "load_tokenizer"]
