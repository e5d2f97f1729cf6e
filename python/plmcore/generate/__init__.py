"""Text from language models: what stands behind lm.generate, lm.stream, lm.score and
lm.fill_blanks. docs/generation.md has the rules.
"""

from plmcore.generate.blanks import Filled
from plmcore.generate.blanks import batch as blank_batch
from plmcore.generate.run import Generated, Run, begin, generate, pieces, stream
from plmcore.generate.scoring import score
from plmcore.generate.settings import Settings

__all__ = [
    "Filled",
    "Generated",
    "Run",
    "Settings",
    "begin",
    "blank_batch",
    "generate",
    "pieces",
    "score",
    "stream",
]
