"""Best losses of blanks against enumeration of all texts and sizes of a small chain, and the sizes against
those that the objective draws.
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
from plmcore.objectives import BlankInfilling

BENCHMARKS = pathlib.Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
markov, blanks = importlib.import_module("markov"), importlib.import_module("markov.blanks")
corrupted = importlib.import_module("markov.corrupted")
sys.path.remove(str(BENCHMARKS))

CHAIN = markov.Chain.random(3, 0.7, seed=1)
RATE, MEAN = 0.5, 1.5


def cut(text, seen, sizes):
    """The runs that are seen and the pieces, where the runs have these lengths; the text may be too short."""
    runs, pieces, at = [], [], 0
    for n, size in itertools.zip_longest(seen, sizes, fillvalue=0):
        runs.append(tuple(text[at : at + n]))
        pieces.append(tuple(text[at + n : at + n + size]))
        at += n + size
    return runs, pieces[:-1]


@pytest.mark.parametrize("seen, order", [((1, 1, 1), (0, 1)), ((1, 1, 1), (1, 0)), ((0, 2, 0), (1, 0))])
def test_against_enumeration(seen, order):
    """A text of seven tokens with two blanks: every text, and every way to cut the blanks."""
    length = 7
    texts = list(itertools.product(range(3), repeat=length))
    chances = corrupted.likelihood(CHAIN, np.array(texts))
    ways = blanks.explanations(length, 2, length - sum(seen), RATE, MEAN)
    assert len(ways) > 2
    # what is seen -> what is written, token by token -> chance
    joint = defaultdict(lambda: defaultdict(float))
    for (text, chance), (sizes, share) in itertools.product(zip(texts, chances), ways):
        runs, pieces = cut(text, seen, sizes)
        written = [x for j in order for x in (*pieces[j], "end")]
        for n in range(len(written) + 1):
            joint[tuple(runs)][tuple(written[:n])] += chance * share
    for text, (sizes, _) in itertools.product(texts[::131], ways):
        runs, pieces = cut(text, seen, sizes)
        written = tuple(x for j in order for x in (*pieces[j], "end"))
        known = joint[tuple(runs)]
        expected = [-np.log(known[written[: n + 1]] / known[written[:n]]) for n in range(len(written))]
        found = blanks.filled(CHAIN, runs, pieces, order, rate=RATE, mean=MEAN)
        assert np.allclose(found, expected)


def test_sizes_are_those_of_the_objective():
    """Of each number of blanks and hidden tokens, and wherever the masks stand."""
    length, times = 8, 30_000
    tokenizer = fakes.Numbers("bert", plain=30)
    text = tokenizer.first + np.arange(length)
    corpus = Corpus.from_ids([text] * times, tokenizer.vocab_size)
    objective = BlankInfilling(
        corpus, tokenizer, length + 2, rate=RATE, mean=MEAN, packing="documents",
        masks=[tokenizer.mask_token_id] * 3, start=0, end=0,
    )  # fmt: skip
    examples = np.arange(times)
    rng = importlib.import_module("plmcore.objectives.rng").Rng(0, 0, examples)
    starts, sizes = objective.token_spans(examples, np.full(times, length), rng)
    found = defaultdict(Counter)
    for begin, size in zip(starts.tolist(), sizes.tolist()):
        size = tuple(n for n in size if n)
        hidden = itertools.accumulate(size, initial=0)
        masks = tuple(b - h for b, h in zip(begin, hidden) if b or not h)[: len(size)]
        found[sum(size), masks][size] += 1
    compared = 0
    for (hidden, masks), counts in found.items():
        ways = dict(blanks.explanations(length, len(masks), hidden, RATE, MEAN))
        total, share = sum(counts.values()), sum(ways.values())
        assert counts.keys() <= ways.keys()
        for size, chance in ways.items():
            expected = chance / share
            assert abs(counts[size] / total - expected) < 5 * np.sqrt(expected / total) + 2 / total
            compared += len(ways) > 1 and total > 200
    assert compared > 20
