"""ROUGE of summaries (Lin 2004)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from plmcore.evaluate.pairs import answers, f_score, paired

_NO_WORD = re.compile(r"[^a-z0-9]+")


def rouge(
    predictions: Sequence[str],
    references: Sequence[str | Sequence[str]],
    stem: Callable[[str], str] | None = None,
) -> dict[str, float]:
    """F1 of ROUGE-1, ROUGE-2, ROUGE-L (longest common subsequence of the texts) and ROUGE-Lsum (of their
    lines), mean over summaries.

    Words are stretches of a-z and 0-9 of the text in lower case. `stem` is applied to words of more than
    three letters; the numbers in papers are mostly with Porter's. Of several references the best counts, for
    each kind by itself.
    """
    predictions, references = paired("rouge", predictions, references)
    totals = dict.fromkeys(("rouge1", "rouge2", "rougeL", "rougeLsum"), 0.0)
    for text, rights in zip(predictions, answers("rouge", references)):
        scored = [rouge_of(text, right, stem) for right in rights]
        for kind in totals:
            totals[kind] += max(scores[kind]["f1"] for scores in scored)
    return {kind: total / len(predictions) for kind, total in totals.items()}


def rouge_of(
    prediction: str, reference: str, stem: Callable[[str], str] | None = None
) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each kind for one summary."""
    p, r = words(prediction, stem), words(reference, stem)
    common = len(common_places(r, p))
    return {
        "rouge1": overlap(p, r, 1),
        "rouge2": overlap(p, r, 2),
        "rougeL": f_score(common, len(p), len(r)),
        "rougeLsum": by_lines(prediction, reference, stem),
    }


def words(text: str, stem: Callable[[str], str] | None = None) -> list[str]:
    found = _NO_WORD.sub(" ", text.lower()).split()
    return found if stem is None else [stem(w) if len(w) > 3 else w for w in found]


def overlap(prediction: Sequence[str], reference: Sequence[str], n: int) -> dict[str, float]:
    """Of n-grams, counted with repetition."""
    p, r = (Counter(zip(*(side[i:] for i in range(n)))) for side in (prediction, reference))
    return f_score((p & r).total(), p.total(), r.total())


def by_lines(prediction: str, reference: str, stem: Callable[[str], str] | None = None) -> dict[str, float]:
    """ROUGE-Lsum: for each line of the reference, its words that are in a longest common subsequence with any
    line of the prediction.

    A word counts at most as often as each side has it.
    """
    p, r = ([words(line, stem) for line in side.split("\n")] for side in (prediction, reference))
    left = [Counter(w for line in side for w in line) for side in (p, r)]
    sizes = [counts.total() for counts in left]
    hits = 0
    for line in r:
        places = set().union(*(common_places(line, other) for other in p))
        for i in sorted(places):
            if all(counts[line[i]] > 0 for counts in left):
                hits += 1
                for counts in left:
                    counts[line[i]] -= 1
    return f_score(hits, *sizes)


def common_places(a: Sequence[str], b: Sequence[str]) -> list[int]:
    """Where in `a` the words of a longest common subsequence of a and b stand."""
    lengths = [[0] * (len(b) + 1)]
    for x in a:
        above, row = lengths[-1], [0]
        for j, y in enumerate(b):
            row.append(above[j] + 1 if x == y else max(above[j + 1], row[j]))
        lengths.append(row)
    places, i, j = [], len(a), len(b)
    while i and j:
        if a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            places.append(i)
        elif lengths[i][j - 1] > lengths[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return places[::-1]
