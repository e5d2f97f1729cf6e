"""Text whose best loss is known: a Markov chain, and what a perfect model would score at each objective on
it.

A trained model should come within 2 % of that and never go below it on text that it has not seen; below means
that a mask leaks.
"""

from . import blanks, corrupted, optimum
from .chain import Chain
from .states import States

__all__ = ["Chain", "States", "optimum", "corrupted", "blanks"]
