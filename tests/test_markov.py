"""The Markov benchmark against enumeration of all sequences of small chains."""

import importlib
import itertools
import pathlib
import sys

import fakes
import numpy as np
import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
markov, optimum = importlib.import_module("markov"), importlib.import_module("markov.optimum")
sys.path.remove(str(BENCHMARKS))


CHAIN = markov.Chain.random(3, 0.7, seed=1)


def probability(sequence, chain=CHAIN):
    p = chain.start[sequence[0]]
    for a, b in itertools.pairwise(sequence):
        p *= chain.P[a, b]
    return p


def sequences(n):
    return [(s, probability(s)) for s in itertools.product(range(3), repeat=n)]


def test_the_stationary_distribution_stays():
    assert np.allclose(CHAIN.start @ CHAIN.P, CHAIN.start) and CHAIN.start.min() > 0
    assert np.allclose(CHAIN.power(3), CHAIN.P @ CHAIN.P @ CHAIN.P) and np.allclose(CHAIN.power(0), np.eye(3))
    assert CHAIN.power(3000).shape == (3, 3)
    with pytest.raises(ValueError, match=r"rows of P \[K, K\] must be distributions, got \[2, 2\]"):
        markov.Chain([[0.5, 0.6], [0.5, 0.5]])


def test_samples_follow_the_chain():
    text = CHAIN.sample(2000, 30, seed=4)
    assert np.array_equal(text[100:103], CHAIN.sample(103, 30, seed=4)[100:])
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (text[:, :-1].ravel(), text[:, 1:].ravel()), 1)
    n = pairs.sum(1, keepdims=True)
    assert (abs(pairs / n - CHAIN.P) < 4 * np.sqrt(CHAIN.P * (1 - CHAIN.P) / n)).all()
    assert (abs(np.bincount(text[:, 0], minlength=3) / 2000 - CHAIN.start) < 4 * np.sqrt(0.25 / 2000)).all()


def test_language_model():
    expected = sum(-p * np.log(p / probability(s[:-1])) for s, p in sequences(3))
    assert abs(optimum.expected_lm(CHAIN) - expected) < 1e-12


@pytest.mark.parametrize("gap", [1, 2, 3])
def test_gaps(gap):
    known = sequences(gap + 2)
    for k in range(gap):
        expected = 0.0
        for s, p in known:  # the token from what is left of it and the end
            same = sum(q for r, q in known if r[: k + 1] == s[: k + 1] and r[-1] == s[-1])
            here = sum(q for r, q in known if r[: k + 2] == s[: k + 2] and r[-1] == s[-1])
            expected -= p * np.log(here / same)
        assert abs(optimum.expected_gap(CHAIN, gap)[k] - expected) < 1e-12


def test_any_visible_set():
    rng = np.random.default_rng(0)
    known = sequences(5)
    states, targets, visible, expected = [], [], [], []
    for s, _ in known[::7]:
        for t in range(5):
            see = rng.random(5) < 0.4
            see[t] = False
            fits = [(r, q) for r, q in known if all(r[i] == s[i] for i in np.flatnonzero(see))]
            here = sum(q for r, q in fits if r[t] == s[t])
            states.append(s), targets.append(t), visible.append(see)
            expected.append(-np.log(here / sum(q for _, q in fits)))
    found = optimum.seen(CHAIN, np.array(states), np.array(targets), np.array(visible))
    assert np.allclose(found, expected) and len(found) > 150
    with pytest.raises(ValueError, match="a target is visible"):
        optimum.seen(CHAIN, np.array([[0, 1]]), np.array([0]), np.array([[True, False]]))


def test_masks_with_random_and_unchanged_tokens():
    rate, shares, V = 0.3, (0.6, 0.3, 0.1), 7
    hide, random, same = shares
    known = sequences(4)

    def emission(y, x, labelled):
        chosen = hide if y == -1 else same * (y == x) + random / V
        return chosen if labelled else rate * chosen + (1 - rate) * (y == x)

    rng = np.random.default_rng(0)
    observed = rng.choice([-1, 0, 1, 2, 5], p=[0.3, 0.2, 0.2, 0.2, 0.1], size=(40, 4))
    labels = np.where(rng.random((40, 4)) < 0.5, rng.integers(0, 3, (40, 4)), -100)
    expected = []
    for y, label in zip(observed, labels):
        for t in np.flatnonzero(label != -100):
            weights = np.zeros(3)
            for s, p in known:
                weights[s[t]] += p * np.prod([emission(y[i], s[i], i == t) for i in range(4)])
            expected.append(-np.log(weights[label[t]] / weights.sum()))
    found = optimum.masked(CHAIN, observed, labels, vocab_size=V, rate=rate, shares=shares)
    assert np.allclose(found, expected) and len(found) > 50


@pytest.mark.parametrize("before, after", [(0, 2), (1, None), (None, 1)])
def test_blanks_of_unknown_length(before, after):
    lengths = [0.5, 0.2, 0.3]

    def weight(span):
        whole = [x for x in (before, *span, after) if x is not None]
        return lengths[len(span) - 1] * probability(whole)

    spans = [s for n in (1, 2, 3) for s in itertools.product(range(3), repeat=n)]
    for span in spans:
        expected = []
        for k in range(len(span) + 1):
            fits = [s for s in spans if s[:k] == span[:k]]
            here = [s for s in fits if (s == span if k == len(span) else s[: k + 1] == span[: k + 1])]
            expected.append(-np.log(sum(map(weight, here)) / sum(map(weight, fits))))
        assert np.allclose(optimum.blank(CHAIN, before, span, after, lengths), expected)


def test_corrupted_spans_of_unknown_lengths():
    """Texts of seven tokens of which three are hidden in two spans, the second at the end: every text and
    every way to cut it.
    """
    known = sequences(7)
    cuts = [(a, n, b, m) for a in (1, 2, 3) for b in (4 - a,) if b >= 1 for n in (1, 2) for m in (3 - n,)]
    cases = {}  # what is seen -> [(spans, weight)]
    for s, p in known:
        for a, n, b, m in cuts:
            seen = (s[:a], s[a + n : a + n + b])
            spans = (s[a : a + n], s[a + n + b :])
            cases.setdefault(seen, []).append((spans, p))
    for seen in list(cases)[::9]:
        ways = cases[seen]
        labels = {spans: (*spans[0], "next", *spans[1], "end") for spans, _ in ways}
        for spans, _ in ways[::3]:
            expected = [0.0]
            for k in range(len(labels[spans])):
                fits = sum(q for r, q in ways if labels[r][:k] == labels[spans][:k])
                here = sum(q for r, q in ways if labels[r][: k + 1] == labels[spans][: k + 1])
                expected.append(-np.log(here / fits))
            assert np.allclose(optimum.corrupted_spans(CHAIN, seen, spans), expected)


def test_evidence_of_masked_texts():
    rate, shares, V = 0.3, (0.6, 0.3, 0.1), 7
    hide, random, same = shares
    observed = np.array([[0, -1, 2, -9], [5, 1, -1, 0], [2, -9, -9, -9]])
    found = optimum.evidence(CHAIN, observed, vocab_size=V, rate=rate, shares=shares)
    for y, log_p in zip(observed, found):
        y = y[y > -9]
        expected = 0.0
        for s, p in sequences(len(y)):
            chosen = [hide if o == -1 else same * (o == x) + random / V for o, x in zip(y, s)]
            expected += p * np.prod([rate * c + (1 - rate) * (o == x) for c, o, x in zip(chosen, y, s)])
        assert abs(log_p - np.log(expected)) < 1e-12


def test_next_sentence():
    for gap in (1, 3):
        accuracy = loss = 0.0
        for a, b in itertools.product(range(3), repeat=2):
            follows = sum(p for s, p in sequences(gap + 1) if (s[0], s[-1]) == (a, b))
            apart = CHAIN.start[a] * CHAIN.start[b]
            accuracy += max(follows, apart) / 2
            loss -= (
                follows * np.log(follows / (follows + apart)) + apart * np.log(apart / (follows + apart))
            ) / 2
        assert np.allclose(optimum.expected_next_sentence(CHAIN, gap), (accuracy, loss))


def test_sentence_order():
    accuracy = loss = 0.0
    for s, p in sequences(5):
        first, second = s[:2], s[2:]
        q = probability(second + first)
        accuracy += max(p, q) / 2
        loss -= (p * np.log(p / (p + q)) + q * np.log(q / (p + q))) / 2
    assert np.allclose(optimum.expected_sentence_order(CHAIN, 2, 3), (accuracy, loss))


def test_batches_of_the_objectives_have_the_expected_optimum():
    """The chain's own averages, from batches as a model gets them."""
    from plmcore.objectives import MaskedLM, PermutationLM

    chain = markov.Chain.random(20, 0.3, seed=0)
    tokenizer = fakes.Numbers(plain=20)
    corpus = chain.corpus(300, 62, first=tokenizer.first)

    single = MaskedLM(corpus, tokenizer, length=64, packing="documents", exact=True, most=1, shares=(1, 0, 0))
    batch = single.batch(np.arange(300), seed=0, epoch=0)
    observed, labels = (batch[k][:, 1:-1] for k in ("input_ids", "labels"))
    observed = np.where(observed == tokenizer.mask_token_id, -1, observed - tokenizer.first)
    labels = np.where(labels == -100, -100, labels - tokenizer.first)
    losses = optimum.masked(chain, observed, labels, vocab_size=tokenizer.vocab_size, shares=(1, 0, 0))
    inner = (labels[:, 1:-1] != -100).any(1)
    expected = optimum.expected_gap(chain)[0]
    assert len(losses) == 300
    assert abs(losses[inner].mean() - expected) < 3 * losses[inner].std() / np.sqrt(inner.sum())

    xlnet = fakes.Numbers("xlnet", plain=20)
    permuted = PermutationLM(corpus, xlnet, length=64, packing="documents")
    batch = permuted.batch(np.arange(300), seed=0, epoch=0)
    text = batch["input_ids"] >= xlnet.first
    losses = optimum.permutation(
        chain, batch["input_ids"] - xlnet.first, batch["perm_mask"], batch["target_mapping"], text
    )
    assert len(losses) == (batch["labels"] != -100).sum()
    assert expected < losses.mean() < optimum.expected_lm(chain)  # spans lie between


def test_a_model_that_counts_comes_close_and_not_below():
    """Bigram counts of a long text, on another: the criterion that trained models are held to."""
    chain = markov.Chain.random(20, 0.3, seed=0)
    train, test = chain.sample(2000, 100, seed=1), chain.sample(400, 100, seed=2)
    counts = np.full((20, 20), 0.1)
    np.add.at(counts, (train[:, :-1].ravel(), train[:, 1:].ravel()), 1)
    model = -np.log((counts / counts.sum(1, keepdims=True))[test[:, :-1], test[:, 1:]]).mean()
    best = -np.log(chain.P[test[:, :-1], test[:, 1:]]).mean()
    assert best < model < 1.02 * best
    assert abs(best / optimum.expected_lm(chain) - 1) < 0.02
