"""The best possible losses of a model that fills the blanks of a text, each with a piece whose length is not
seen (GLM).

All texts have the same length, which a model comes to know: so it knows how many tokens are hidden in all.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

from .chain import Chain
from .optimum import blank


def filled(
    chain: Chain,
    seen: Sequence[Sequence[int]],
    pieces: Sequence[Sequence[int]],
    order: Sequence[int],
    *,
    rate: float,
    mean: float,
) -> np.ndarray:
    """Losses of the labels of BlankInfilling for one text: of each piece in the order in which they are
    written, its tokens and its end.

    seen[i] is the text before piece i, seen[-1] that after the last; pieces are in the order of the text.
    Where the masks stand says nothing about the sizes of the pieces, beyond their sum.
    """
    hidden = sum(map(len, pieces))
    length = hidden + sum(map(len, seen))
    before = [run[-1] if run else None for run in seen[:-1]]
    after = [run[0] if run else None for run in seen[1:]]
    ways = explanations(length, len(pieces), hidden, rate, mean)
    losses, open_pieces = [], set(range(len(pieces)))
    for j in order:
        lengths, open_pieces = np.zeros(hidden), open_pieces - {j}
        for sizes, chance in ways:
            for i in open_pieces:
                if before[i] is not None and after[i] is not None:
                    chance *= chain.power(sizes[i] + 1)[before[i], after[i]]
            lengths[sizes[j] - 1] += chance
        losses.append(blank(chain, before[j], pieces[j], after[j], lengths))
        ways = [(sizes, chance) for sizes, chance in ways if sizes[j] == len(pieces[j])]
    return np.concatenate(losses)


@functools.cache
def explanations(
    length: int, count: int, hidden: int, rate: float, mean: float
) -> list[tuple[tuple[int, ...], float]]:
    """The sizes that so many pieces with this sum may have in the order of the text, with their chances."""
    found = []
    for cuts in itertools.combinations(range(1, hidden), count - 1):
        sizes = tuple(b - a for a, b in zip((0, *cuts), (*cuts, hidden)))
        orders = list(itertools.permutations(sizes))  # drawn in any order, and then shuffled
        chance = sum(drawn(length, sizes, rate, mean) for sizes in orders) / len(orders)
        found += [(sizes, chance)] if chance else []
    return found


def drawn(length: int, sizes: Sequence[int], rate: float, mean: float) -> float:
    """The chance to draw these sizes: Poisson's from 1 on, until `rate` of the text is reached; the last is
    cut to the room that there is.
    """
    budget = max(1, int(rate * length))
    most = 39
    weights = [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(1, most + 1)]
    *whole, last = sizes
    if not sum(whole) < budget <= sum(sizes):
        return 0.0
    room = max(1, length - sum(whole) - len(whole))
    ending = sum(weights[last - 1 :]) if last == room else weights[last - 1]
    return math.prod(weights[s - 1] for s in whole) * ending / sum(weights) ** len(sizes)
