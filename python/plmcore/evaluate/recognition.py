"""Error rates of transcripts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from plmcore._core import ArgumentError
from plmcore.evaluate.pairs import paired


def wer(predictions: Sequence[str], references: Sequence[str]) -> float:
    """Word error rate: insertions, deletions and substitutions over the number
    of reference words, all texts together.

    Words are what white space separates: bring case and punctuation to one form before.
    More than 1 is possible.
    """
    return _error_rate("wer", [p.split() for p in predictions], [r.split() for r in references])


def cer(predictions: Sequence[str], references: Sequence[str]) -> float:
    """The same of characters, spaces among them."""
    return _error_rate("cer", list(predictions), list(references))


def edits(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """The least number of insertions, deletions and substitutions that turn a into b.

    Myers (1999) as Hyyrö (2003) writes it: a column of the table is two bit vectors, of its steps up and of
    its steps down.
    """
    if not a:
        return len(b)
    places: dict[Hashable, int] = {}
    for i, x in enumerate(a):
        places[x] = places.get(x, 0) | 1 << i
    full, last = (1 << len(a)) - 1, 1 << (len(a) - 1)
    up, down, distance = full, 0, len(a)
    for y in b:
        here = places.get(y, 0)
        diagonal = (((here & up) + up) ^ up) | here | down
        right_up, right_down = down | ~(diagonal | up) & full, up & diagonal
        distance += bool(right_up & last) - bool(right_down & last)
        right_up, right_down = right_up << 1 | 1, right_down << 1
        up, down = (right_down | ~(diagonal | right_up)) & full, right_up & diagonal & full
    return distance


def _error_rate(
    metric: str, predictions: Sequence[Sequence[str]], references: Sequence[Sequence[str]]
) -> float:
    predictions, references = paired(metric, predictions, references)
    total = sum(map(len, references))
    if total == 0:
        raise ArgumentError(f"{metric}: the references are empty")
    return sum(map(edits, predictions, references)) / total
