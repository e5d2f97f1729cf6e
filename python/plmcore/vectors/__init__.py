"""Word vectors: opened, compared, trained by word2vec and GloVe. docs/vectors.md."""

from plmcore.vectors.glove import glove
from plmcore.vectors.pretraining import pretrain
from plmcore.vectors.records import Cooccurrences, cooccurrences
from plmcore.vectors.table import Analogies, Similarities, Vectors, load_vectors
from plmcore.vectors.word2vec import word2vec

__all__ = [
    "Analogies",
    "Cooccurrences",
    "Similarities",
    "Vectors",
    "cooccurrences",
    "glove",
    "load_vectors",
    "pretrain",
    "word2vec",
]
