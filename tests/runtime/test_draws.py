import numpy as np
from plmcore.runtime import draws


def test_a_draw_depends_on_its_place_alone():
    everywhere = draws.uniform(7, 0, np.arange(50)[:, None], np.arange(20))
    assert everywhere.shape == (50, 20)
    assert everywhere[13, 4] == draws.uniform(7, 0, 13, 4)
    assert np.array_equal(everywhere[30:], draws.uniform(7, 0, np.arange(30, 50)[:, None], np.arange(20)))


def test_every_coordinate_counts():
    places = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0), (2**63, 0, 0), (0, 0), (0, 0, 0, 0)]
    assert len({int(draws.bits(*place)) for place in places}) == len(places)


def test_draws_are_uniform_and_unrelated():
    n = 200_000
    values = draws.uniform(3, np.arange(n))
    counts = np.bincount((values * 64).astype(int), minlength=64)
    assert ((counts - n / 64) ** 2 / (n / 64)).sum() < 63 + 5 * np.sqrt(2 * 63)
    for neighbour in (
        draws.uniform(4, np.arange(n)),
        draws.uniform(3, np.arange(1, n + 1)),
        draws.uniform(3, 0, np.arange(n)),
    ):
        assert abs(np.corrcoef(values, neighbour)[0, 1]) < 4 / np.sqrt(n)


def test_below_covers_its_range_evenly():
    found = draws.below(np.array([1, 6, 2**32]), 5, np.arange(60_000)[:, None])
    assert found.min() == 0 and (found.max(0) < [1, 6, 2**32]).all()
    assert abs(np.bincount(found[:, 1]) - 10_000).max() < 4 * np.sqrt(10_000 * 5 / 6)
