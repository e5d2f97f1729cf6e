import itertools

import numpy as np
import pytest
from plmcore.data import Order
from plmcore.data.order import TABLE


@pytest.mark.parametrize("n", [0, 1, 2, 1000, TABLE, TABLE + 1, 100_003, 2**18])
def test_every_item_once(n):
    assert np.array_equal(np.sort(Order(n, seed=3, epoch=1)[:]), np.arange(n))


@pytest.mark.parametrize("n", [1000, 300_000])
def test_an_item_depends_on_its_place_alone(n):
    order, whole = Order(n, 5, 2), Order(n, 5, 2)[:]
    some = np.array([[n - 1, 0], [7, 400]])
    assert np.array_equal(order[some], whole[some])
    assert order[17] == whole[17] and np.ndim(order[17]) == 0
    shares = [order[rank::3] for rank in range(3)]
    assert np.array_equal(np.sort(np.concatenate(shares)), np.arange(n))
    assert np.array_equal(shares[1], whole[1::3])


@pytest.mark.parametrize("n", [1000, 300_000])
def test_seed_and_epoch_change_it(n):
    orders = [Order(n, seed, epoch)[:] for seed, epoch in [(0, 0), (1, 0), (0, 1), (-1, 0)]]
    for one, other in itertools.combinations(orders, 2):
        assert (one == other).sum() < 12  # 1 is to be expected
        assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(n)


def test_small_orders_are_equally_likely():
    counts = np.zeros(24)
    every = {p: k for k, p in enumerate(itertools.permutations(range(4)))}
    for seed in range(4800):
        counts[every[tuple(Order(4, seed)[:])]] += 1
    assert ((counts - 200) ** 2 / 200).sum() < 23 + 5 * np.sqrt(2 * 23)


def test_large_orders_look_random():
    n = 4_000_000
    places = np.arange(0, n, 4)
    items = Order(n, 11)[places]
    cells = np.bincount(places * 32 // n * 32 + items * 32 // n, minlength=1024)
    expected = len(places) / 1024
    assert ((cells - expected) ** 2 / expected).sum() < 1023 + 5 * np.sqrt(2 * 1023)
    steps = np.diff(items) % n  # of neighbours: two digits that moved apart would show here
    cells = np.bincount(steps * 512 // n, minlength=512)
    assert ((cells - len(steps) / 512) ** 2 / (len(steps) / 512)).sum() < 511 + 5 * np.sqrt(2 * 511)


def test_orders_beyond_memory():
    order = Order(10**15, 1)
    items = order[np.arange(10**14, 10**14 + 1000)]
    assert len(set(items.tolist())) == 1000 and 0 <= items.min() and items.max() < 10**15


@pytest.mark.parametrize("n", [10, 100_000])
def test_outside(n):
    with pytest.raises(IndexError, match=rf"order of {n} items has no item {n}"):
        Order(n, 0)[n]
    with pytest.raises(IndexError, match="no item -1"):
        Order(n, 0)[np.array([3, -1])]
    with pytest.raises(ValueError, match="got -5"):
        Order(-5, 0)
