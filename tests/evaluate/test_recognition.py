import numpy as np
import pytest
from plmcore.evaluate import recognition


def test_by_hand():
    assert recognition.edits("kitten", "sitting") == 3
    assert recognition.edits("", "abc") == recognition.edits("abc", "") == 3
    assert recognition.wer(["the cat sit on mat", "yes"], ["the cat sat on the mat", "yes"]) == 2 / 7
    assert recognition.wer(["a b c"], ["a"]) == 2.0  # more than 1
    assert recognition.cer(["abc d"], ["abd d"]) == 1 / 5
    with pytest.raises(ValueError, match="the references are empty"):
        recognition.wer(["a"], [" "])


def table(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y)))
    return row[-1]


def test_edits_are_those_of_the_table():
    rng = np.random.default_rng(3)
    for n in [*range(12), 63, 64, 65, 130] * 8:
        a, b = (rng.integers(0, 4, max(0, n + rng.integers(-3, 4))).tolist() for _ in range(2))
        assert recognition.edits(a, b) == table(a, b)
