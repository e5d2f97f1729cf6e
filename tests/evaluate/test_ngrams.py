import tracemalloc

import numpy as np
import pytest
from plmcore.data import Corpus
from plmcore.evaluate import contamination, ngrams

WORDS = np.array([f"w{i}" for i in range(1000)])


def text(seed, n):
    return " ".join(WORDS[np.random.default_rng(seed).integers(0, 1000, n)])


def test_planted_overlap(tmp_path, monkeypatch):
    # n-grams cross the pieces.
    monkeypatch.setattr("plmcore.evaluate.texts.pieces.__defaults__", (100, "strict"))
    tests = [text(i, 40) for i in range(6)]
    words = tests[2].split()
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text(text(100, 3000) + "\n" + ", ".join(words[5:25]).upper() + "! " + text(101, 3000))
    second.write_text(text(102, 500) + " " + " ".join(tests[4].split()[:12]) + "\n" + tests[5])
    got = contamination([first, second], tests, n=13)
    assert got.found.tolist() == [False, False, True, False, False, True]  # twelve words are not enough
    assert got.shared[2] == 20 / 40 and got.shared[5] == 1.0 and got.share == 2 / 6
    assert got.clean.tolist() == [0, 1, 3, 4]
    assert contamination([first, second], tests, n=8).found.tolist() == [
        False,
        False,
        True,
        False,
        True,
        True,
    ]
    assert "2 of 6 texts share a 13-gram" in repr(got)


def test_equals_a_search_by_sets():
    rng = np.random.default_rng(0)
    small = np.array(["a", "b", "c"])
    make = lambda n: " ".join(small[rng.integers(0, 3, n)])
    training, tests = make(60), [make(n) for n in (3, 4, 9, 20)]
    for n in (3, 4, 5):
        grams = lambda t, n=n: [tuple(t.split()[i : i + n]) for i in range(len(t.split()) - n + 1)]
        known = set(grams(training))
        got = contamination(training, tests, n=n)
        assert got.found.tolist() == [any(g in known for g in grams(t)) for t in tests]
        for shared, test in zip(got.shared, tests):
            hits = [i for i, g in enumerate(grams(test)) if g in known]
            assert shared == pytest.approx(
                len({j for i in hits for j in range(i, i + n)}) / len(test.split())
            )


def test_n_follows_the_tests_and_common_phrases_do_not_count():
    assert contamination("x", [text(i, 10) for i in range(20)]).n == 10
    assert contamination("x", [text(i, 3) for i in range(20)]).n == 8
    assert contamination("x", [text(i, 300) for i in range(20)]).n == 13
    short = contamination(text(0, 5), [text(0, 5), text(1, 20)], n=8)
    assert short.checked.tolist() == [False, True] and not short.found.any()
    phrase = text(3, 10)
    training = " ".join([phrase + " end"] * 12)
    assert contamination(training, [phrase], n=10).found.all()
    assert contamination(training, [phrase], n=10, common=11).found.sum() == 0
    assert contamination(training, [phrase], n=10, common=12).found.all()


def test_ids(monkeypatch):
    monkeypatch.setattr(ngrams, "BLOCK", 64)
    rng = np.random.default_rng(1)
    training = rng.integers(0, 5000, 1000).astype(np.uint16)
    tests = [training[100:120].astype(np.int64), rng.integers(0, 5000, 20), training[60:72]]
    assert contamination(training, tests, n=13).found.tolist() == [True, False, False]

    corpus = Corpus.from_ids([training[:500], training[500:]], vocab_size=5000)
    assert contamination(corpus, tests, n=13).found.tolist() == [True, False, False]
    assert contamination([training[:500], training[500:]], tests, n=13).found.tolist() == [True, False, False]


def test_bad_input():
    with pytest.raises(ValueError, match="must both be texts, or both ids"):
        contamination("a text", [np.arange(20)])
    with pytest.raises(ValueError, match="tests must be a list of texts"):
        contamination("a text", "a text")
    with pytest.raises(ValueError, match="tests must be a list"):
        contamination("a text", [])
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        contamination("a text", ["b"], n=0)
    with pytest.raises(TypeError, match="arrays of ids"):
        contamination(np.zeros((2, 2)), [np.arange(20)])


def test_memory_does_not_grow_with_the_training_corpus(tmp_path):
    peaks, tests = [], [text(i, 40) for i in range(10)]
    for times in (10, 50):
        file = tmp_path / f"{times}.txt"
        file.write_text((text(times, 5000) + "\n") * times)
        tracemalloc.start()
        contamination(file, tests)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
