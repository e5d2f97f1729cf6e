"""BLEU of translations."""

from __future__ import annotations

from collections.abc import Sequence

from plmcore._core import ArgumentError
from plmcore.evaluate.needed import needed
from plmcore.evaluate.pairs import answers, paired


def bleu(
    predictions: Sequence[str],
    references: Sequence[str | Sequence[str]],
    tokenize: str = "13a",
    lowercase: bool = False,
) -> dict[str, float | str]:
    """Corpus BLEU-4 by sacreBLEU, 0 to 100: texts as people write them, not tokenised.

    `bleu_signature` says how it was counted (tokenisation, case, smoothing, version); numbers with different
    signatures cannot be compared.
    """
    predictions, references = paired("bleu", predictions, references)
    rights = answers("bleu", references)
    metrics = needed("sacrebleu.metrics", "bleu")
    if tokenize not in (known := metrics.BLEU.TOKENIZERS):
        raise ArgumentError(f"bleu: there is no tokenize {tokenize!r}; one of {', '.join(known)}")
    counter = metrics.BLEU(tokenize=tokenize, lowercase=lowercase)
    most = max(map(len, rights))
    streams = [[right[i] if i < len(right) else None for right in rights] for i in range(most)]
    score = counter.corpus_score(predictions, streams)
    return {
        "bleu": score.score,
        "brevity_penalty": score.bp,
        "bleu_signature": str(counter.get_signature()),
    }
