import itertools

import numpy as np
import pytest
from plmcore.evaluate import coreference

# The example of Pradhan et al. 2014, figure 2, and the values they print.
KEY, RESPONSE = [["abc", "defg"]], [["ab", "cd", "fghi"]]


def test_published_example():
    assert coreference.muc(RESPONSE, KEY) == pytest.approx({"precision": 2 / 5, "recall": 2 / 5, "f1": 0.4})
    got = coreference.b_cubed(RESPONSE, KEY)
    assert got == pytest.approx({"precision": 1 / 2, "recall": 35 / 84, "f1": 5 / 11})


def test_published_example_of_ceaf():
    pytest.importorskip("scipy", reason="needs the extra eval")
    got = coreference.ceaf(RESPONSE, KEY)
    assert got == pytest.approx({"precision": 1.3 / 3, "recall": 0.65, "f1": 0.52})
    whole = coreference.coreference(RESPONSE, KEY)
    assert whole == pytest.approx(
        {"muc": 0.4, "b_cubed": 5 / 11, "ceaf": 0.52, "conll": (0.4 + 5 / 11 + 0.52) / 3}
    )


def test_counts_are_summed_over_documents():
    got = coreference.muc([*RESPONSE, ["xyz"]], [*KEY, ["xyz"]])
    assert got["recall"] == pytest.approx((2 + 2) / (5 + 2))


def test_perfect_empty_and_bad():
    pytest.importorskip("scipy", reason="needs the extra eval")
    assert coreference.coreference(KEY, KEY)["conll"] == pytest.approx(1.0)
    assert coreference.coreference([[]], KEY) == {"muc": 0.0, "b_cubed": 0.0, "ceaf": 0.0, "conll": 0.0}
    with pytest.raises(ValueError, match="document 0 has the mention 'b' in two clusters"):
        coreference.muc([["ab", "bc"]], KEY)
    with pytest.raises(ValueError, match="document 0 has an empty cluster"):
        coreference.b_cubed([[""]], KEY)


def test_best_alignment():
    pytest.importorskip("scipy", reason="needs the extra eval")
    rng = np.random.default_rng(4)
    for _ in range(30):
        sides = []
        for _ in range(2):
            home = rng.integers(0, 4, 9)
            sides.append([set(np.flatnonzero(home == h)) for h in np.unique(home)])
        p, r = sides
        small, large = sorted(sides, key=len)
        worth = lambda a, b: 2 * len(a & b) / (len(a) + len(b))
        best = max(sum(map(worth, small, order)) for order in itertools.permutations(large, len(small)))
        assert coreference.ceaf([p], [r])["recall"] == pytest.approx(best / len(r))
