"""Text to ids and back: WordPiece, BPE, sentencepiece, characters and words,
with the special tokens of each family.
"""

from plmcore.tokenizers.batch import Batch
from plmcore.tokenizers.families import FAMILIES, Family
from plmcore.tokenizers.guard import TokenizerError
from plmcore.tokenizers.loading import load_tokenizer
from plmcore.tokenizers.spelled import SpelledTokenizer
from plmcore.tokenizers.tokenizer import Tokenizer
from plmcore.tokenizers.training import train_tokenizer
from plmcore.tokenizers.word_characters import TaggerCharacters, WordCharacters

__all__ = [
    "FAMILIES",
    "Batch",
    "Family",
    "SpelledTokenizer",
    "TaggerCharacters",
    "Tokenizer",
    "TokenizerError",
    "WordCharacters",
    "load_tokenizer",
    "train_tokenizer",
]
