import math

import numpy as np
import plmcore as plm
import pytest
from plmcore.evaluate import classification

# 2 true positives, 1 false positive, 1 false negative, 2 true negatives
PREDICTIONS, REFERENCES = [1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 0, 0]


def test_accuracy():
    assert classification.accuracy(PREDICTIONS, REFERENCES) == pytest.approx(4 / 6)
    assert classification.accuracy(["a", "b"], ["a", "c"]) == 0.5
    assert classification.accuracy(np.array([3, 4]), np.array([3, 4])) == 1.0


@pytest.mark.parametrize(
    ("predictions", "references", "error", "message"),
    [
        ([1, 0], [1], plm.ArgumentError, "accuracy: 2 predictions and 1 references"),
        ([], [], plm.ArgumentError, "there are no predictions"),
        (
            "abc",
            ["a", "b", "c"],
            TypeError,
            "predictions must be a list or an array, one item per example, got str",
        ),
        (3, [1], TypeError, "predictions must be a list"),
    ],
)
def test_bad_input(predictions, references, error, message):
    with pytest.raises(error, match=message):
        classification.accuracy(predictions, references)


def test_f1():
    pytest.importorskip("sklearn", reason="needs the extra eval")
    assert classification.f1(PREDICTIONS, REFERENCES) == pytest.approx(2 / 3)  # P = R = 2/3
    # P 1/2, R 1.
    assert classification.f1(["y", "y", "n"], ["y", "n", "n"], positive="y") == pytest.approx(2 / 3)
    three = [0, 1, 2, 2, 1], [0, 1, 1, 2, 2]  # F1 of the classes: 1, 1/2, 1/2
    assert classification.f1(*three, average="macro") == pytest.approx(2 / 3)
    assert classification.f1(*three, average="micro") == pytest.approx(3 / 5)
    assert classification.f1([0, 0], [1, 1]) == 0.0
    with pytest.raises(ValueError, match="average must be one of binary, micro, macro, got 'weighted'"):
        classification.f1([1], [1], average="weighted")
    with pytest.raises(ValueError, match=r"binary has 1 and one other class, got \['0', '2'\]"):
        classification.f1([1, 2], [1, 0])


def test_matthews():
    pytest.importorskip("sklearn", reason="needs the extra eval")
    assert classification.matthews(PREDICTIONS, REFERENCES) == pytest.approx(
        (2 * 2 - 1 * 1) / math.sqrt(3 * 3 * 3 * 3)
    )
    assert classification.matthews([1, 1, 1], [1, 0, 1]) == 0.0  # a constant answer
    assert classification.matthews([0, 1], [1, 0]) == -1.0
    rng = np.random.default_rng(0)
    p, r = rng.integers(0, 4, (2, 200))
    as_one_hot = np.eye(4)[p], np.eye(4)[r]  # the correlation of K labels: covariances of the indicators
    centred = [x - x.mean(0) for x in as_one_hot]
    cov = lambda a, b: (a * b).sum()
    want = cov(*centred) / math.sqrt(cov(centred[0], centred[0]) * cov(centred[1], centred[1]))
    assert classification.matthews(p, r) == pytest.approx(want)


def test_senses():
    got = classification.senses(
        ["bank1", None, "bat2", "x"], ["bank1", "bank2", {"bat1", "bat2"}, ["y", "z"]]
    )
    assert got == pytest.approx({"precision": 2 / 3, "recall": 2 / 4, "f1": 4 / 7})
    assert classification.senses([None], ["a"]) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


def test_reciprocal_rank():
    scores = [[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [1.0, 2.0, 3.0]]  # the right one is 1st, 3rd, 2nd
    assert classification.reciprocal_rank(scores, [1, 2, 1]) == pytest.approx((1 + 1 / 3 + 1 / 2) / 3)
    assert classification.reciprocal_rank([[3.0, 1.0, 2.0]], [{1, 2}]) == 0.5  # the best of the right ones
    assert classification.reciprocal_rank([[0.0] * 4], [0]) == 0.25  # a constant scorer gains nothing
    with pytest.raises(ValueError, match=r"example 1 has 2 candidates, and the right one is \[2\]"):
        classification.reciprocal_rank([[0, 1], [0, 1]], [0, 2])
    with pytest.raises(ValueError, match="example 0 are not all finite"):
        classification.reciprocal_rank([[0, math.nan]], [0])
