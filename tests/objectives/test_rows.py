import itertools

import numpy as np
from plmcore.objectives import rows

RNG = np.random.default_rng(0)


def test_compact_moves_what_is_kept():
    values = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    keep = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], bool)
    out, lengths = rows.compact(values, keep, -1)
    assert out.tolist() == [[1, 3], [-1, -1], [8, -1]] and lengths.tolist() == [2, 0, 1]


def test_smallest_and_shuffled():
    keys = np.array([[0.3, 0.1, 0.2, 0.9], [0.4, 0.5, 0.6, 0.0]])
    assert rows.smallest(keys, np.array([2, 0])).tolist() == [[False, True, True, False], [False] * 4]
    assert rows.shuffled(keys, np.array([3, 2])).tolist() == [[1, 2, 0, 3], [0, 1, 2, 3]]
    assert rows.smallest(np.zeros((2, 0)), np.array([0, 0])).shape == (2, 0)


def test_ranges():
    assert rows.ranges(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]


def test_counted():
    groups = np.array([[0, 0, 1, 2], [1, 1, 1, 0]])
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], bool)
    assert rows.counted(groups, mask, 3).tolist() == [[2, 1, 0], [0, 2, 0]]


def test_compositions_are_equally_likely():
    n = 6000
    parts = rows.composition(np.full(n, 6), np.full(n, 3), RNG.random((n, 5)))
    ways = [w for w in itertools.product(range(1, 5), repeat=3) if sum(w) == 6]
    counts = [int((parts == way).all(1).sum()) for way in ways]
    assert len(ways) == 10 and sum(counts) == n
    assert max(abs(c - n / 10) for c in counts) < 4 * np.sqrt(n * 0.1 * 0.9)


def test_compositions_of_unequal_rows():
    total, parts = np.array([1, 7, 4, 0]), np.array([1, 2, 4, 1])
    found = rows.composition(total, parts, RNG.random((4, 6)))
    assert found.sum(1).tolist() == total.tolist() and found.shape == (4, 4)
    assert (np.count_nonzero(found, axis=1) == [1, 2, 4, 0]).all()
