"""CIDEr-D of captions (Vedantam et al. 2015)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from plmcore.evaluate.pairs import answers, paired

ORDERS = (1, 2, 3, 4)
SIGMA = 6.0  # of the penalty for another length
Grams = Counter[tuple[str, ...]]
Weights = list[dict[tuple[str, ...], float]]


def cider(predictions: Sequence[str], references: Sequence[str | Sequence[str]]) -> float:
    """Mean over captions of 10 x the similarity of tf-idf weighted n-grams to those
    of the references, n = 1 to 4.

    Document frequencies are those of the references given, so that one caption alone scores 0. Words are what
    white space separates, in lower case: take punctuation off before.
    """
    predictions, references = paired("cider", predictions, references)
    rights = [[_grams(r) for r in right] for right in answers("cider", references)]
    documents = Counter(gram for right in rights for gram in set().union(*right))
    scale = math.log(len(rights))
    total = 0.0
    for prediction, right in zip(predictions, rights):
        mine = _weighted(_grams(prediction), documents, scale)
        total += sum(_similarity(mine, _weighted(r, documents, scale)) for r in right) / len(right)
    return 10 * total / len(predictions)


def _grams(text: str) -> Grams:
    words = text.lower().split()
    return Counter(gram for n in ORDERS for gram in zip(*(words[i:] for i in range(n))))


def _weighted(grams: Grams, documents: Grams, scale: float) -> tuple[Weights, int]:
    """For each n the weights of the n-grams, and the length of the text in bigrams."""
    by_order: Weights = [{} for _ in ORDERS]
    for gram, count in grams.items():
        by_order[len(gram) - 1][gram] = count * (scale - math.log(max(documents[gram], 1)))
    return by_order, sum(count for gram, count in grams.items() if len(gram) == 2)


def _similarity(a: tuple[Weights, int], b: tuple[Weights, int]) -> float:
    """The mean over n of the cosine, where a weight of the prediction counts no higher than
    that of the reference.
    """
    penalty = math.exp(-((a[1] - b[1]) ** 2) / (2 * SIGMA**2))
    total = 0.0
    for x, y in zip(a[0], b[0]):
        norms = math.sqrt(sum(w * w for w in x.values()) * sum(w * w for w in y.values()))
        if norms:
            total += sum(min(w, y[gram]) * y[gram] for gram, w in x.items() if gram in y) / norms
    return penalty * total / len(ORDERS)
