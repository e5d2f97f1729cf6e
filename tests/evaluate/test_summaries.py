import itertools

import numpy as np
import pytest
from plmcore.evaluate import summaries


def test_by_hand():
    got = summaries.rouge_of("the cat was under the bed", "The cat was found under the bed!")
    assert got["rouge1"] == pytest.approx({"precision": 1.0, "recall": 6 / 7, "f1": 12 / 13})
    assert got["rouge2"] == pytest.approx({"precision": 4 / 5, "recall": 4 / 6, "f1": 8 / 11})
    assert (
        got["rougeL"] == got["rougeLsum"] == pytest.approx({"precision": 1.0, "recall": 6 / 7, "f1": 12 / 13})
    )
    assert summaries.rouge_of("police kill the gunman", "police killed the gunman")["rougeL"]["f1"] == 0.75
    assert summaries.rouge_of("the gunman kill police", "police killed the gunman")["rougeL"]["f1"] == 0.5


def test_union_of_lines():
    # Lin 2004: against "w1 w2 w6 w7 w8" and "w1 w3 w8 w9 w5" the line "w1 w2 w3 w4 w5" shares w1 w2 w3 w5
    got = summaries.by_lines("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5")
    assert got["recall"] == 4 / 5 and got["precision"] == 4 / 10


def test_many():
    got = summaries.rouge(["a b", "c d"], [["x y", "a b"], "c e"])
    assert got == {"rouge1": 0.75, "rouge2": 0.5, "rougeL": 0.75, "rougeLsum": 0.75}
    assert summaries.rouge([""], ["a"])["rouge1"] == 0.0
    assert summaries.rouge(["walking fast"], ["walked fast"], stem=lambda w: w[:4])["rouge2"] == 1.0


def test_common_places_is_a_longest_common_subsequence():
    rng = np.random.default_rng(2)
    for _ in range(200):
        a, b = (rng.integers(0, 3, rng.integers(0, 7)).tolist() for _ in range(2))
        places = summaries.common_places(a, b)
        subsequences = lambda s: {c for n in range(len(s) + 1) for c in itertools.combinations(s, n)}
        common = subsequences(a) & subsequences(b)
        assert tuple(a[i] for i in places) in common and len(places) == max(map(len, common))


def test_against_the_package_rouge_score():
    scorer = pytest.importorskip("rouge_score.rouge_scorer", reason="rouge-score is not installed")
    kinds = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
    theirs = scorer.RougeScorer(kinds)
    rng = np.random.default_rng(5)
    words = np.array(["the", "cat", "sat", "on", "mat,", "Dog's", "ran", "\n", "3.5"])
    for _ in range(100):
        a, b = (" ".join(words[rng.integers(0, len(words), rng.integers(1, 30))]) for _ in range(2))
        want, got = theirs.score(target=b, prediction=a), summaries.rouge_of(a, b)
        for kind in kinds:
            assert list(got[kind].values()) == pytest.approx(list(want[kind]))
