import math

import pytest
from plmcore.evaluate import captions


def test_by_hand():
    # Every n-gram is in one of two texts, so each weighs ln 2 and cosines are those of 0/1 vectors.
    assert captions.cider(["a b c d", "e f g h"], ["a b c d", "e f g h"]) == pytest.approx(10.0)
    # "a b" has 2 of the 4 words and 1 of the 3 pairs, and is two bigrams shorter: cosines 2/sqrt(8),
    # 1/sqrt(3), 0, 0
    one = math.exp(-(2**2) / 72) * (2 / math.sqrt(8) + 1 / math.sqrt(3)) / 4
    assert captions.cider(["a b", "x y"], ["a b c d", "e f g h"]) == pytest.approx(10 * one / 2)


def test_what_all_texts_have_weighs_nothing_and_repetition_does_not_help():
    assert captions.cider(["a", "a"], ["a b", "a c"]) == 0.0
    plain, loud = (captions.cider([text, "z"], ["cat sat", "dog ran"]) for text in ("cat", "cat cat cat cat"))
    assert 0 < loud < plain


def test_several_references():
    alone = captions.cider(["a b", "z"], ["a b", "d e"])
    assert captions.cider(["a b", "z"], [["a b", "q r"], "d e"]) == pytest.approx(alone / 2)
