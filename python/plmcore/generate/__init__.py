"""Text from language models: what stands behind lm.generate, lm.stream and lm.score.
docs/generation.md has the rules.
"""

from plmcore.generate.run import Generated, Run, begin, generate, pieces, stream
from plmcore.generate.scoring import score
from plmcore.generate.settings import Settings

__all__ = ["Generated", "Run", "Settings", "begin", "generate", "pieces", "score", "stream"]
