"""The best possible losses of a model that writes a text, token by token, from a corrupted one (BART).

All texts have the same length, which a model comes to know. Each function takes one example, or a batch, and
gives the loss of every token: -log Z(t) / Z(t - 1), where Z(t) is the chance of what was seen together with
the first t tokens.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from .chain import Chain

Gap = tuple[int, int, int]  # seen tokens before it, masks in it, hidden tokens


def likelihood(chain: Chain, texts: np.ndarray) -> np.ndarray:
    """[N, T] -> [N]"""
    return chain.start[texts[:, 0]] * chain.P[texts[:, :-1], texts[:, 1:]].prod(1)


def reordered(chain: Chain, candidates: np.ndarray, text: np.ndarray) -> np.ndarray:
    """Where the text is one of the candidates [N, T], each of which would have been corrupted to what was
    seen with the same chance.  -> [T]
    """
    agree = np.cumprod(candidates == text, 1).astype(bool)  # with the first t tokens
    weights = likelihood(chain, candidates)
    Z = np.append(weights.sum(), (weights[:, None] * agree).sum(0))
    return -np.diff(np.log(Z))


def rotations(seen: np.ndarray) -> np.ndarray:
    """The texts that a rotation may have turned into this one.  [T] -> [T, T]"""
    return np.stack([np.roll(seen, k) for k in range(len(seen))])


def orders(seen: np.ndarray, sentence: int) -> np.ndarray:
    """The same for sentences of so many tokens that have changed places."""
    parts = seen.reshape(-1, sentence)
    return np.stack([parts[list(order)].ravel() for order in itertools.permutations(range(len(parts)))])


def deleted(chain: Chain, seen: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Where T - S tokens are left out, all with the same chance.  seen [B, S], texts [B, T] -> [B, T]"""
    (B, S), T, K = seen.shape, texts.shape[1], chain.states
    unit = np.eye(K)[seen]  # [B, S, K]
    ways = np.zeros((T + 1, B, S + 1, K))  # onward[t]: from state k at t with j of the seen tokens used
    ways[T, :, S] = 1.0

    def following(after: np.ndarray) -> np.ndarray:
        """By the next state: it is left out, or it is the next seen token."""
        found = after.copy()
        found[:, :-1] += unit * after[:, 1:]
        return found

    for t in range(T - 1, 0, -1):
        ways[t] = following(ways[t + 1]) @ chain.P.T
    first = following(ways[1]) @ chain.start  # [B, S + 1]
    used = np.zeros((B, S + 1))
    used[:, 0] = 1.0
    Z, prefix, row = [first[:, 0]], np.ones(B), np.arange(B)
    for t in range(1, T + 1):
        token = texts[:, t - 1]
        step = used.copy()
        step[:, 1:] += used[:, :-1] * (seen == token[:, None])
        used = step
        prefix = prefix * (chain.start[token] if t == 1 else chain.P[texts[:, t - 2], token])
        Z.append(prefix * (used * ways[t][row, :, token]).sum(1))
    return -np.diff(np.log(np.stack(Z, 1)), axis=1)


def infilled(
    chain: Chain, seen: Sequence[int | None], text: np.ndarray, share: float, mean: float
) -> np.ndarray:
    """Where runs of tokens have become one mask each (None), and masks stand where nothing was hidden, as
    Denoising makes them.  -> [T]
    """
    T = len(text)
    tokens = [s for s in seen if s is not None]
    masks, before = [0] * (len(tokens) + 1), 0
    for s in seen:
        if s is None:
            masks[before] += 1
        else:
            before += 1
    Z = np.zeros(T + 1)
    for weight, hidden in explanations(T, share, mean, tuple(masks)):
        at = np.cumsum(np.array(hidden[:-1]) + 1) - 1  # where the seen tokens stand
        Z += weight * prefixes(chain, np.array(tokens), at, text)
    return -np.diff(np.log(Z))


def prefixes(chain: Chain, tokens: np.ndarray, at: np.ndarray, text: np.ndarray) -> np.ndarray:
    """The chance of these tokens at these places and of the text's first t tokens, for every t.  [T + 1]"""
    T = len(text)
    powers = chain.powers(T)
    wrong = at[text[at] != tokens]
    last = int(wrong[0]) if len(wrong) else T  # so many tokens agree
    between = np.array([powers[b - a, x, y] for a, b, x, y in zip(at, at[1:], tokens, tokens[1:])])
    onward = np.append(np.cumprod(between[::-1])[::-1], 1.0)  # from seen token j through all later ones
    Z = np.zeros(T + 1)
    Z[0] = chain.start[tokens[0]] * onward[0]
    prefix = 1.0
    for t in range(1, last + 1):
        prefix *= chain.start[text[0]] if t == 1 else chain.P[text[t - 2], text[t - 1]]
        j = int(np.searchsorted(at, t))  # the next seen token; its place counts from 0
        Z[t] = prefix * (1.0 if j == len(at) else powers[at[j] - (t - 1), text[t - 1], tokens[j]] * onward[j])
    return Z


@functools.cache
def explanations(
    T: int, share: float, mean: float, masks: tuple[int, ...]
) -> list[tuple[float, tuple[int, ...]]]:
    """How many tokens each gap between the seen ones may hide, with the chance of these masks then."""
    found: defaultdict[tuple[int, ...], float] = defaultdict(float)
    seen, total = len(masks) - 1, sum(masks)
    zero = math.exp(-mean)
    for (gaps, spans), chance in patterns(T, share, mean).items():
        if T - sum(h for _, _, h in gaps) != seen or any(r > masks[i] for i, r, _ in gaps):
            continue
        runs = sum(r for _, r, _ in gaps)
        extra, room = total - runs, T - seen - runs
        if extra < 0 or extra > room:
            continue
        drawn = [math.comb(z + spans - 1, z) * zero**z * (1 - zero) ** spans for z in range(extra + 1)]
        inserted = drawn[extra] if extra < room else 1 - sum(drawn[:-1])
        ways = math.prod(math.comb(masks[i], r) for i, r, _ in gaps) / math.comb(seen + total, extra)
        hidden = [0] * len(masks)
        for i, _, h in gaps:
            hidden[i] = h
        found[tuple(hidden)] += chance * inserted * ways
    return [(weight, hidden) for hidden, weight in found.items()]


@functools.cache
def patterns(T: int, share: float, mean: float) -> dict[tuple[tuple[Gap, ...], int], float]:
    """The chance of every way to hide spans of T tokens, by its gaps and the number of spans drawn."""
    budget = math.ceil(share * T)
    weights = [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(128)]
    positive = sum(weights[1:])
    found: defaultdict[tuple[tuple[Gap, ...], int], float] = defaultdict(float)
    for sizes in compositions(budget):
        *whole, last = sizes
        chance = math.prod(weights[s] for s in whole) * sum(weights[last:]) / positive ** len(sizes)
        starts = list(itertools.permutations(range(T), len(sizes)))
        for places in starts:
            found[gaps_of(T, zip(places, sizes)), len(sizes)] += chance / len(starts)
    return dict(found)


def gaps_of(T: int, spans: Iterable[tuple[int, int]]) -> tuple[Gap, ...]:
    first, covered = set(), set()
    for place, size in spans:
        first.add(place)
        covered.update(range(place + 1, min(place + size, T)))
    gaps: list[Gap] = []
    seen = runs = hidden = 0
    for t in range(T + 1):
        if t < T and (t in first or t in covered):
            hidden += 1
            runs += t not in covered
            continue
        if hidden:
            gaps.append((seen, runs, hidden))
        seen, runs, hidden = seen + 1, 0, 0
    return tuple(gaps)


def compositions(n: int) -> Iterator[tuple[int, ...]]:
    """All ways to write n as a sum of positive numbers in order."""
    if n == 0:
        yield ()
    for first in range(1, n + 1):
        for rest in compositions(n - first):
            yield (first, *rest)
