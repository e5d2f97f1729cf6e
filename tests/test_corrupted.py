"""Best losses of corrupted texts against enumeration of all texts and noises of a small chain, and against
the noises that the objective makes.
"""

import importlib
import itertools
import pathlib
import sys
from collections import Counter, defaultdict

import fakes
import numpy as np
import pytest
from plmcore.data import Corpus
from plmcore.objectives import Denoising

BENCHMARKS = pathlib.Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
markov, corrupted = importlib.import_module("markov"), importlib.import_module("markov.corrupted")
sys.path.remove(str(BENCHMARKS))

CHAIN = markov.Chain.random(3, 0.7, seed=1)
TEXTS = np.array(list(itertools.product(range(3), repeat=4)))
CHANCES = corrupted.likelihood(CHAIN, TEXTS)


def rotated(text):
    return [(tuple(np.roll(text, -k)), 1 / 4) for k in range(4)]


def permuted(text):
    return [((*text[2:], *text[:2]), 1 / 2), (tuple(text), 1 / 2)]


def deleted(text):
    kept = list(itertools.combinations(range(4), 2))
    return [(tuple(text[list(k)]), 1 / len(kept)) for k in kept]


BEST = {
    rotated: lambda seen, text: corrupted.reordered(CHAIN, corrupted.rotations(seen), text),
    permuted: lambda seen, text: corrupted.reordered(CHAIN, corrupted.orders(seen, 2), text),
    deleted: lambda seen, text: corrupted.deleted(CHAIN, seen[None], text[None])[0],
}


@pytest.mark.parametrize("noise", BEST, ids=lambda noise: noise.__name__)
def test_against_enumeration(noise):
    joint = defaultdict(float)  # (seen, first t tokens) -> chance
    for text, chance in zip(TEXTS, CHANCES):
        for seen, share in noise(text):
            for t in range(5):
                joint[tuple(map(int, seen)), tuple(text[:t].tolist())] += chance * share
    for text in TEXTS[::7]:
        for seen, _ in noise(text):
            seen = tuple(map(int, seen))
            expected = [
                -np.log(joint[seen, tuple(text[: t + 1])] / joint[seen, tuple(text[:t])]) for t in range(4)
            ]
            assert np.allclose(BEST[noise](np.array(seen), text), expected)


def made(text, share, mean, times):
    """What the objective makes of a text, and how often."""
    tokenizer = fakes.Numbers("bart", plain=30)
    tokenizer.word_starts[:] = True
    corpus = Corpus.from_ids([tokenizer.first + text] * times, tokenizer.vocab_size)
    objective = Denoising(
        corpus, tokenizer, len(text) + 2, "infilling", mask=share, mean=mean, packing="documents"
    )
    batch = objective.batch(np.arange(times), seed=0, epoch=0)
    rows = [row[mask == 1][1:-1] for row, mask in zip(batch["input_ids"], batch["attention_mask"])]
    return Counter(
        tuple(None if i == tokenizer.mask_token_id else int(i) - tokenizer.first for i in row) for row in rows
    )


@pytest.mark.parametrize("share, mean", [(0.3, 2.0), (0.5, 1.0)])
def test_infilling_against_the_objective(share, mean):
    """Z of the whole text is its chance times that of what is seen: as often as the objective makes that of
    it.
    """
    text, times = np.array([0, 1, 2, 2, 1, 0, 0]), 20_000
    total, chance = 0.0, corrupted.likelihood(CHAIN, text[None])[0]
    for seen, count in made(text, share, mean, times).items():
        masks, tokens = [0] * (1 + sum(s is not None for s in seen)), 0
        for s in seen:
            masks[tokens] += s is None
            tokens += s is not None
        states = np.array([s for s in seen if s is not None])
        Z = np.zeros(8)
        for weight, hidden in corrupted.explanations(7, share, mean, tuple(masks)):
            Z += weight * corrupted.prefixes(CHAIN, states, np.cumsum(np.array(hidden[:-1]) + 1) - 1, text)
        expected = Z[-1] / chance
        total += expected
        assert abs(count / times - expected) < 5 * np.sqrt(expected / times) + 2 / times, seen
        assert np.allclose(corrupted.infilled(CHAIN, seen, text, share, mean), -np.diff(np.log(Z)))
    assert 0.97 < total < 1 + 1e-9  # of all that may be seen, nearly everything was


def test_what_is_seen_has_chances_that_make_one():
    """Over all masks and all tokens between them."""
    patterns = corrupted.patterns(5, 0.4, 1.5)
    assert sum(patterns.values()) == pytest.approx(1)
    total = 0.0
    for seen in range(6):
        for masks in itertools.product(range(6), repeat=seen + 1):
            total += sum(weight for weight, _ in corrupted.explanations(5, 0.4, 1.5, masks))
    assert total == pytest.approx(1)
