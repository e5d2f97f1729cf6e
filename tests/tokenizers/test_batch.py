import random

import numpy as np
import pytest
from plmcore.tokenizers.batch import Padding, Truncation, fill, share
from plmcore.tokenizers.format import BARE, Format, Part

A, B, CLS, SEP = Part(0, -1, 0), Part(1, -1, 1), Part(None, 100, 0), Part(None, 101, 0)
PAIRS = Format((CLS, A, SEP), (CLS, A, SEP, B, Part(None, 101, 1)))


def test_share():
    assert (
        share(3, 9, 8) == (3, 5)
        and share(9, 3, 8) == (5, 3)
        and share(9, 9, 7) == (4, 3)[::-1]
        and share(4, 4, 8) == (4, 4)
    )
    for n in range(12):
        for m in range(12):
            for room in range(n + m + 1):
                a, b = share(n, m, room)
                assert a + b == room and 0 <= a <= n and 0 <= b <= m
                assert abs(a - b) <= 1 or (a == n if a < b else b == m)  # equal, unless the shorter is whole


def test_one_text_is_cut_in_windows_that_overlap():
    rows = Truncation(5, stride=1).windows(7, 8, None, added=2)
    assert [(w.sample, w.a.start, w.a.stop) for w in rows] == [(7, 0, 3), (7, 2, 5), (7, 4, 7), (7, 6, 8)]
    assert [w.a for w in Truncation(5).windows(0, 8, None, 2)] == [slice(0, 3)]
    for seed in range(300):
        r = random.Random(seed)
        n, room = r.randrange(40), r.randrange(1, 12)
        stride = r.randrange(room)
        rows = Truncation(room, stride=stride).windows(0, n, None, 0)
        assert {i for w in rows for i in range(w.a.start, w.a.stop)} == set(range(n))
        assert all(len(w) == room for w in rows[:-1]) and all(
            x.a.stop - y.a.start == stride for x, y in zip(rows, rows[1:])
        )


def test_pairs():
    cut = Truncation(10, "only_second", stride=1)
    assert [(w.a, w.b.start, w.b.stop) for w in cut.windows(0, 3, 9, added=3)] == [
        (slice(0, 3), 0, 4), (slice(0, 3), 3, 7), (slice(0, 3), 6, 9),
    ]  # fmt: skip
    first, *rest = Truncation(8, "longest_first", stride=0).windows(0, 4, 4, added=2)
    assert [(w.a.start, w.b.start) for w in [first, *rest]] == [(0, 0), (3, 0), (3, 3), (0, 3)]


@pytest.mark.parametrize(
    "cut, size, message",
    [
        (dict(length=2), (9, 9, 3), "max_length=2 has no room for the 3 special tokens"),
        (
            dict(length=8, truncation="only_first"),
            (3, 9, 2),
            "the second text of pair 0 alone, 9 tokens, and 2 special tokens fill max_length=8",
        ),
        (dict(length=8, truncation="only_second"), (9, 3, 2), "the first text of pair 0 alone, 9 tokens"),
        (dict(length=8, truncation="only_second"), (9, None, 2), "needs a second text"),
        (dict(length=8, stride=6), (9, None, 2), "stride=6 must be below the 6 tokens"),
        (dict(length=0), (1, None, 0), "max_length must be at least 1, got 0"),
        (
            dict(length=None, stride=1),
            (1, None, 0),
            "stride must be at least 0 and needs a max_length, got 1 and None",
        ),
        (dict(length=9, stride=-1), (1, None, 0), "got -1 and 9"),
        (
            dict(length=9, truncation="all"),
            (1, None, 0),
            "truncation must be one of longest_first, .*, got 'all'",
        ),
    ],
)
def test_what_cannot_be_cut(cut, size, message):
    with pytest.raises(ValueError, match=message):
        Truncation(**cut).windows(0, *size)


def test_padding():
    rows = [np.array([5, 6, 7]), np.array([8])]
    windows = [w for i, row in enumerate(rows) for w in Truncation(None).windows(i, len(row), None, 2)]
    right = fill(windows, rows, None, PAIRS, Padding(9, 0, "right", multiple=4))
    assert right["input_ids"].tolist() == [[100, 5, 6, 7, 101, 9, 9, 9], [100, 8, 101, 9, 9, 9, 9, 9]]
    left = fill(windows, rows, None, PAIRS, Padding(9, 3, "left", length=6))
    assert left["input_ids"].tolist() == [[9, 100, 5, 6, 7, 101], [9, 9, 9, 100, 8, 101]]
    assert left["token_type_ids"].tolist() == [[3, 0, 0, 0, 0, 0], [3, 3, 3, 0, 0, 0]]
    assert left["attention_mask"].tolist() == [[0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1]]
    assert fill([], [], None, BARE, Padding(0, 0, "right"))["input_ids"].shape == (0, 0)
    for wrong, message in (
        (dict(side="up"), "left or right, got 'up'"),
        (dict(side="left", multiple=0), "at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            Padding(0, 0, **wrong)
