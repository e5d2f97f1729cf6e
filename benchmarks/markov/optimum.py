"""The best possible losses, in nats, and accuracies.

`expected_*` are averages over the chain; the others take examples as a batch has them, and give the best loss
of each prediction in it, which is what a model's loss on the same batch compares with.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .chain import Chain

NONE = -1  # a place that is not seen


def expected_lm(chain: Chain) -> float:
    """The entropy rate: each token from the one before it."""
    return float(-(chain.start[:, None] * chain.P * _log(chain.P)).sum())


def expected_gap(chain: Chain, gap: int = 1) -> np.ndarray:
    """The loss of each token of a gap between two known tokens, written from the left.  [gap]; gap 1 is the
    masked token's.
    """
    losses = []
    for k in range(gap):
        # From the token just written, to the known one on the right.
        left, right = (
            chain.P,
            chain.power(gap - k),
        )
        joint = chain.start[:, None, None] * left[:, :, None] * right[None, :, :]  # [before, token, after]
        given = joint.sum(1, keepdims=True)
        losses.append(-(joint * (_log(joint) - _log(given))).sum())
    return np.array(losses)


def expected_next_sentence(chain: Chain, gap: int = 1) -> tuple[float, float]:
    """Accuracy and loss where the second segment follows, `gap` tokens after the last of the first, or is of
    elsewhere.
    """
    follows = chain.start[:, None] * chain.power(gap)
    apart = chain.start[:, None] * chain.start
    return _two_classes(follows, apart)


def expected_sentence_order(chain: Chain, first: int, second: int) -> tuple[float, float]:
    """Accuracy and loss for two segments of these lengths, in order or not.

    What tells are their first and last tokens.
    """
    u, v = chain.power(first - 1), chain.power(second - 1)  # first token -> last token
    in_order = np.einsum("a,ab,bc,cd->abcd", chain.start, u, chain.P, v)
    swapped = np.einsum("c,cd,da,ab->abcd", chain.start, v, chain.P, u)
    return _two_classes(in_order, swapped)


def seen(chain: Chain, states: np.ndarray, targets: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """The loss of the token at targets[n] of states[n] where the places visible[n] are known.  [N, T], [N],
    bool [N, T] -> [N]

    Only the nearest known tokens on both sides matter.
    """
    N, T = states.shape
    row, place = np.arange(N), np.arange(T)
    if visible[row, targets].any():
        raise ValueError("a target is visible")
    left = np.where(visible & (place < targets[:, None]), place, NONE).max(1)
    right = np.where(visible & (place > targets[:, None]), place, T).min(1)
    powers = _log(chain.powers(T))
    token, start = states[row, targets], _log(chain.start)
    has_left, has_right = left >= 0, right < T
    before, after = states[row, np.maximum(left, 0)], states[row, np.minimum(right, T - 1)]
    reached = np.where(has_left, powers[np.where(has_left, targets - left, 0), before, token], start[token])
    onward = np.where(has_right, powers[np.where(has_right, right - targets, 0), token, after], 0.0)
    skipped = np.where(
        has_left, powers[np.where(has_left & has_right, right - left, 0), before, after], start[after]
    )
    return -(reached + onward - np.where(has_right, skipped, 0.0))


def permutation(
    chain: Chain, states: np.ndarray, perm_mask: np.ndarray, target_mapping: np.ndarray, text: np.ndarray
) -> np.ndarray:
    """Losses of all targets of a batch of PermutationLM, row by row. text [B, T]: where tokens of the chain
    stand, on end.
    """
    row, _, target = np.nonzero(target_mapping)
    visible = (perm_mask[row, target] == 0) & text[row]
    visible[np.arange(len(row)), target] = False
    return seen(chain, states[row], target, visible)


def masked(
    chain: Chain,
    observed: np.ndarray,
    labels: np.ndarray,
    *,
    vocab_size: int,
    rate: float = 0.15,
    shares: Sequence[float] = (0.8, 0.1, 0.1),
    mask: int = NONE,
) -> np.ndarray:
    """Losses of the labelled tokens of texts that MaskedLM has masked token by token, row by row.

    observed, labels [B, T]: states, with `mask` for a mask and any other number for a random token that is no
    state; -100 for no label. A token that is seen may be a random one, which a perfect model weighs by the
    others: forward-backward over noisy observations.
    """
    unlabelled, labelled = _emissions(chain, observed, vocab_size, rate, shares, mask)
    row, place = np.nonzero(labels != -100)
    before, after = _forward(chain, unlabelled), _backward(chain, unlabelled)
    p = before[row, place] * labelled[row, place] * after[row, place]
    return -np.log(p[np.arange(len(row)), labels[row, place]] / p.sum(1))


def blank(
    chain: Chain, before: int | None, span: Sequence[int], after: int | None, lengths: Sequence[float]
) -> np.ndarray:
    """The losses of a blank's tokens and of its end, where its length n is not seen but drawn with lengths[n
    - 1].  [len(span) + 1]

    Known are the token before the blank and the one after it (None: there is none) and what has been written.
    """
    q, P = np.asarray(lengths, np.float64), chain.P
    losses, last = [], before
    for k, token in enumerate((*span, None)):
        step = chain.start if last is None else P[last]
        # weight of x as the next token: over all lengths n > k, the ways from x to the token after the blank
        onward = np.zeros(chain.states)
        for n in range(k + 1, len(q) + 1):
            onward += q[n - 1] * (1.0 if after is None else chain.power(n - k)[:, after])
        go_on = step * onward
        end = 0.0 if k == 0 or k > len(q) else q[k - 1] * (1.0 if after is None else P[last, after])
        chosen = end if token is None else go_on[token]
        losses.append(-np.log(chosen / (go_on.sum() + end)))
        last = token
    return np.array(losses)


def corrupted_spans(
    chain: Chain, seen: Sequence[Sequence[int]], spans: Sequence[Sequence[int]]
) -> np.ndarray:
    """Losses of the labels of SpanCorruption for one text of a known length: sentinel, span, sentinel, span,
    ..., end token.

    seen[i] is the text before span i; a span ends the text. Lengths are not seen, but what they add up to is,
    and every way to cut is equally likely. Known are also all seen tokens, and what has been written.
    """
    count, total = len(spans), sum(map(len, spans))
    powers = chain.powers(total + 1)
    after = [None if i + 1 == count else seen[i + 1][0] for i in range(count)]

    def reach(token: int, steps: int, i: int) -> float:
        """The chance to come from a token to the text behind span i with so many steps."""
        return 1.0 if after[i] is None else powers[steps, token, after[i]]

    # rest[i][m]: weight of all ways to put m tokens into the spans from i on
    rest = np.zeros((count + 1, total + 1))
    rest[count, 0] = 1.0
    for i in range(count - 1, -1, -1):
        for m in range(1, total + 1):
            rest[i, m] = sum(reach(seen[i][-1], n + 1, i) * rest[i + 1, m - n] for n in range(1, m + 1))
    losses, left = [0.0], total
    for i, span in enumerate(spans):
        last = seen[i][-1]
        for k, token in enumerate((*span, None)):
            onward = np.zeros(chain.states)  # by the token that comes next
            for n in range(left):  # tokens of this span behind it
                ways = np.ones(chain.states) if after[i] is None else powers[n + 1, :, after[i]]
                onward += ways * rest[i + 1, left - 1 - n]
            go_on = chain.P[last] * onward
            end = reach(last, 1, i) * rest[i + 1, left] if k else 0.0
            chosen = end if token is None else go_on[token]
            losses.append(-np.log(chosen / (go_on.sum() + end)))
            if token is not None:
                last, left = token, left - 1
    return np.array(losses)


def evidence(
    chain: Chain,
    observed: np.ndarray,
    *,
    vocab_size: int,
    rate: float,
    shares: Sequence[float] = (0.8, 0.1, 0.1),
    mask: int = NONE,
) -> np.ndarray:
    """log p of texts that MaskedLM has masked, as `masked` takes them; below -1 is behind a row's end.  [B,
    T] -> [B]
    """
    emission, _ = _emissions(chain, observed, vocab_size, rate, shares, mask)
    emission[observed < NONE] = 1.0
    result, state = np.zeros(len(observed)), np.tile(chain.start, (len(observed), 1))
    for t in range(observed.shape[1]):
        weight = state * emission[:, t]
        total = weight.sum(1, keepdims=True)
        result += np.log(total[:, 0])
        state = (weight / total) @ chain.P
    return result


def _emissions(
    chain: Chain, observed: np.ndarray, vocab_size: int, rate: float, shares: Sequence[float], mask: int
) -> tuple[np.ndarray, np.ndarray]:
    """p(what is seen | state) of a token that may have been chosen, and of one that was.  [B, T, K] each"""
    hide, random, same = shares
    unit = np.eye(chain.states)
    is_state = (observed >= 0) & (observed < chain.states)
    itself = np.where(is_state[..., None], unit[np.where(is_state, observed, 0)], 0.0)  # y = x
    hidden = observed == mask
    unlabelled = (1 - rate + rate * same) * itself + rate * random / vocab_size
    labelled = same * itself + random / vocab_size
    unlabelled[hidden], labelled[hidden] = rate * hide, hide
    return unlabelled, labelled


def _two_classes(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Accuracy and loss of the best guess between two joint distributions, equally likely."""
    total = a + b
    loss = -(a * (_log(a) - _log(total)) + b * (_log(b) - _log(total))).sum() / 2
    return float(np.maximum(a, b).sum() / 2), float(loss)


def _forward(chain: Chain, emission: np.ndarray) -> np.ndarray:
    """p(x_t | what is seen before t), up to a factor.  [B, T, K]"""
    out = np.empty_like(emission)
    out[:, 0] = chain.start
    for t in range(1, emission.shape[1]):
        step = (out[:, t - 1] * emission[:, t - 1]) @ chain.P
        out[:, t] = step / step.sum(1, keepdims=True)
    return out


def _backward(chain: Chain, emission: np.ndarray) -> np.ndarray:
    """p(what is seen after t | x_t), up to a factor.  [B, T, K]"""
    out = np.ones_like(emission)
    for t in range(emission.shape[1] - 2, -1, -1):
        step = (out[:, t + 1] * emission[:, t + 1]) @ chain.P.T
        out[:, t] = step / step.sum(1, keepdims=True)
    return out


def _log(p: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(p), -1e300)
