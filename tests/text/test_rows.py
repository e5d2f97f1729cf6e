"""cpp/text/rows.cpp beside the same in NumPy, and what it refuses: it writes into memory that it is given."""

import numpy as np
import plmcore as plm
import pytest
from plmcore._core import text as native
from plmcore.runtime import draws

RNG = np.random.default_rng(5)
INT64 = np.dtype(np.int64)


def ints(*values):
    return np.array(values, INT64)


def taken(ids, ends, starts, lengths, width, separator=9):
    out = np.full((len(starts), width), 77)
    native.take(ids, ends, separator, ints(*starts), ints(*lengths), -1, out)
    return out.tolist()


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_take(dtype):
    ids = np.array([1, 2, 3, 4, 5, 6], dtype)
    assert taken(ids, None, [0, 4, 6], [3, 2, 0], 4) == [[1, 2, 3, -1], [5, 6, -1, -1], [-1] * 4]
    ends = ints(3, 4, 9)  # two tokens, none, four; a 9 after each
    assert taken(ids, ends, [0, 1, 3, 8, 9], [9, 3, 2, 1, 0], 9) == [
        [1, 2, 9, 9, 3, 4, 5, 6, 9],
        [2, 9, 9] + 6 * [-1],
        [9, 3] + 7 * [-1],
        [9] + 8 * [-1],
        9 * [-1],
    ]


@pytest.mark.parametrize("start, length", [(-1, 2), (5, 2), (0, 4), (7, 0), (2**62, 2**62), (0, -1)])
def test_take_stays_inside(start, length):
    with pytest.raises(IndexError, match="take: row 1 must lie in a text of 6 tokens"):
        taken(np.arange(6, dtype=np.uint16), None, [0, start], [1, length], 3)


@pytest.mark.parametrize("ends", [(1, 1, 2), (9, 1, 1), (0, 0, 0), (-5, 8, 9), (2, 3, 4)])
def test_take_from_damaged_documents(ends):
    with pytest.raises(IndexError, match="take: the ends of documents must rise up to 9"):
        taken(np.arange(6, dtype=np.uint32), ints(*ends), [0], [9], 9)


def test_arrays_of_another_kind_are_refused():
    ids, out = np.arange(6, dtype=np.uint16), np.zeros((1, 3), INT64)
    for bad in (np.zeros(1, np.int32), np.zeros(1), np.zeros(1, np.uint64), np.zeros((1, 1), INT64)):
        with pytest.raises(TypeError, match="take: starts must have 1 axes and items of 8 bytes"):
            native.take(ids, None, 0, bad, ints(1), 0, out)
    with pytest.raises(ValueError, match="take: lengths must have 1 along axis 0, got 2"):
        native.take(ids, None, 0, ints(0), ints(1, 1), 0, out)
    with pytest.raises(ValueError, match="not C-contiguous"):
        native.take(ids, None, 0, ints(0), ints(1), 0, np.zeros((3, 1), INT64).T[:, ::2])
    frozen = np.zeros((1, 3), INT64)
    frozen.flags.writeable = False
    with pytest.raises((BufferError, ValueError)):
        native.take(ids, None, 0, ints(0), ints(1), 0, frozen)


def test_lay_out():
    a, b = np.arange(8).reshape(2, 4), 10 + np.arange(6).reshape(2, 3)
    out = np.empty((2, 9), INT64)
    native.lay_out([a, b], [ints(4, 1), ints(2, 0)], [[-1], [-2, -3], []], False, 0, out)
    assert out.tolist() == [[-1, 0, 1, 2, 3, -2, -3, 10, 11], [-1, 4, -2, -3, 0, 0, 0, 0, 0]]
    native.lay_out([7, b], [ints(4, 1), ints(2, 0)], [[-1], [-2, -3], []], True, 0, out)
    assert out.tolist() == [[-1, 7, 7, 7, 7, -2, -3, 10, 11], [0, 0, 0, 0, 0, -1, 7, -2, -3]]


@pytest.mark.parametrize(
    "texts, lengths, fixed, error, message",
    [
        (
            [np.zeros((1, 2), INT64)],
            [ints(3)],
            [[], []],
            IndexError,
            "lengths must be 0 to 2, got 3 in row 0",
        ),
        ([np.zeros((1, 2), INT64)], [ints(-1)], [[], []], IndexError, "lengths must be 0 to 2, got -1"),
        ([5], [ints(4)], [[1], []], IndexError, "row 0 has 5 tokens, and rows have room for 4"),
        ([5, 5], 2 * [ints(2**62)], [[], [], []], IndexError, "lengths must be 0 to 4"),
        ([5], [ints(1)], [[]], ValueError, "1 texts need 1 lengths and 2 lists"),
        ([5, 5], [ints(1)], [[], [], []], ValueError, "2 texts need 2 lengths"),
        ([np.zeros((2, 2), INT64)], [ints(1)], [[], []], ValueError, "a text must have 1 rows, got 2"),
    ],
)
def test_lay_out_stays_inside(texts, lengths, fixed, error, message):
    with pytest.raises(error, match=message):
        native.lay_out(texts, lengths, fixed, False, 0, np.empty((1, 4), INT64))


def test_uniform_is_that_of_draws():
    keys = RNG.integers(0, 2**64, 7, np.uint64)
    out, one = np.empty((7, 33)), np.empty(7)
    native.uniform(keys, out)
    native.uniform(keys, one)
    assert np.array_equal(out, draws.uniform(keys[:, None], np.arange(33)))
    assert np.array_equal(one, draws.uniform(keys))


@pytest.mark.parametrize("shares", [(0.8, 0.1), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
@pytest.mark.parametrize("below", [1.0, 0.3])
def test_hide(shares, below):
    ids, chosen = RNG.integers(0, 50, (4, 100)), RNG.random((4, 100)) < 0.5
    u = RNG.random((4, 100)) * below
    hidden, labels = np.empty_like(ids), np.empty_like(ids)
    random_ids = RNG.permutation(60)[:50]
    native.hide(ids, chosen, u, below, *shares, 99, random_ids, -100, hidden, labels)
    assert np.array_equal(labels, np.where(chosen, ids, -100))
    mask, random = shares
    v = u / below
    expected = np.where(v < mask, 99, ids)
    if random:
        drawn = random_ids[np.clip(((v - mask) * (50 / random)), 0, 49).astype(int)]
        expected = np.where((v >= mask) & (v < mask + random), drawn, expected)
    assert np.array_equal(hidden, np.where(chosen, expected, ids))


@pytest.mark.parametrize("seed", range(5))
def test_mark_spans(seed):
    rng = np.random.default_rng(seed)
    B, T, K = 6, 40, 9
    sizes, shifts = rng.integers(1, 6, (B, K)), rng.integers(0, 20, (B, K))
    begins, lengths = rng.random((B, T)) < 0.6, rng.integers(0, T + 1, B)
    out = np.empty((B, T), bool)
    native.mark_spans(sizes, shifts, 6, 1, begins, lengths, out)
    expected = np.zeros((B, T), bool)
    for b in range(B):
        at = 0
        for size, shift in zip(sizes[b], shifts[b]):
            start = next((t for t in range(at + shift, T) if begins[b, t]), T)
            if start + size <= lengths[b]:
                expected[b, start : start + size] = True
            at += 7 * size
    assert np.array_equal(out, expected)
    for bad in (-1, 2**40):
        sizes[0, 0] = bad
        with pytest.raises(IndexError, match="mark_spans: sizes and shifts"):
            native.mark_spans(sizes, shifts, 6, 1, begins, lengths, out)
    with pytest.raises(IndexError, match="mark_spans: lengths must be 0 to 40, got 41"):
        native.mark_spans(np.ones((B, K), INT64), shifts, 6, 1, begins, np.full(B, 41), out)
    with pytest.raises(plm.ArgumentError, match="mark_spans: the ratio"):
        native.mark_spans(sizes, shifts, 6, 0, begins, lengths, out)


@pytest.mark.parametrize("seed", range(5))
def test_choose_units(seed):
    rng = np.random.default_rng(seed)
    B, T = 6, 40
    starts, able, keys = rng.random((B, T)) < 0.4, rng.random((B, T)) < 0.8, rng.random((B, T))
    starts[0] = False
    counts = rng.integers(0, 12, B)
    out = np.empty((B, T), bool)
    native.choose_units(starts, able, keys, counts, out)
    expected = np.zeros((B, T), bool)
    for b in range(B):
        unit = np.maximum(np.cumsum(starts[b]) - 1, 0)
        left = counts[b]
        for k in np.argsort(keys[b, : unit[-1] + 1]):
            mine = (unit == k) & able[b]
            if mine.sum() <= left:
                expected[b] |= mine
                left -= mine.sum()
    assert np.array_equal(out, expected)


def test_permutation_mask():
    rank, plain = RNG.integers(0, 4, (3, 9)) + 0.0, RNG.random((3, 9)) < 0.5
    targets = ~plain & (RNG.random((3, 9)) < 0.7)
    out = np.empty((3, 9, 9), np.float32)
    native.permutation_mask(rank, plain, targets, out)
    expected = (rank[:, :, None] <= (rank - 0.5 * plain)[:, None, :]).astype(np.float32)
    expected[:, range(9), range(9)] = targets
    assert np.array_equal(out, expected)
    with pytest.raises(ValueError, match="permutation_mask: out must have 9 along axis 2, got 8"):
        native.permutation_mask(rank, plain, targets, np.empty((3, 9, 8), np.float32))


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_join(dtype):
    rows = [np.array(ids, np.int32) for ids in ([1, 2], [], [3], [999])]
    out = np.zeros(4, dtype)
    native.join(rows, 1000, out)
    assert out.tolist() == [1, 2, 3, 999]
    for bad in (-1, 1000, 2**31 - 1):
        with pytest.raises(ValueError, match=f"the tokenizer gave the id {bad}; its vocab_size is 1000"):
            native.join([np.array([5, bad], np.int32)], 1000, np.zeros(2, dtype))
    native.join([row.astype(np.int64) for row in rows], 1000, out)
    assert out.tolist() == [1, 2, 3, 999]
    for n in (3, 5):
        with pytest.raises(ValueError, match="join: the rows must have .* ids"):
            native.join(rows, 1000, np.zeros(n, dtype))
    with pytest.raises(TypeError, match="join: a row must have 1 axes and items of 8 bytes"):
        native.join([np.zeros(2)], 1000, np.zeros(2, dtype))
