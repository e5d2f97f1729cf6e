"""Metrics of short answers, as SQuAD's official script defines them."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

from plmcore.evaluate.pairs import answers, f_score, paired

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """Lower case, without punctuation and the words a, an, the; single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def squad(predictions: Sequence[str], references: Sequence[str | Sequence[str]]) -> dict[str, float]:
    """Exact match and token F1 of answers, each the best over an example's right answers, mean over examples.

    A question without an answer (SQuAD 2.0) has the reference "", and "" is the right prediction.
    """
    predictions, references = paired("squad", predictions, references)
    rights = answers("squad", references)
    exact = sum(max(exact_match(p, r) for r in right) for p, right in zip(predictions, rights))
    overlap = sum(max(token_f1(p, r) for r in right) for p, right in zip(predictions, rights))
    return {"exact_match": exact / len(predictions), "f1": overlap / len(predictions)}


def exact_match(prediction: str, reference: str) -> float:
    return float(normalised(prediction) == normalised(reference))


def token_f1(prediction: str, reference: str) -> float:
    """F1 of the words of two answers, counted with repetition; 1 if neither has any, 0 if one has none."""
    p, r = normalised(prediction).split(), normalised(reference).split()
    if not p or not r:
        return float(p == r)
    shared = sum((Counter(p) & Counter(r)).values())
    return f_score(shared, len(p), len(r))["f1"]


def corpus_f1(predictions: Sequence[str], references: Sequence[str | Sequence[str]]) -> float:
    """F1 over all answers together, where "" is no answer (decaNLP's cF1 for relations).

    Precision is the share of the given answers that are exactly right, recall that of the questions with an
    answer.
    """
    predictions, references = paired("corpus_f1", predictions, references)
    rights = [{normalised(r) for r in right} - {""} for right in answers("corpus_f1", references)]
    given = [normalised(p) for p in predictions]
    hits = sum(bool(p) and p in right for p, right in zip(given, rights))
    return f_score(hits, sum(map(bool, given)), sum(map(bool, rights)))["f1"]
