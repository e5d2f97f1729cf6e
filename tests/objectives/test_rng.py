import math

import numpy as np
from plmcore.objectives.rng import Rng, poisson


def test_draws_are_the_examples_own():
    all_rows, one = Rng(1, 2, np.array([7, 8, 9])), Rng(1, 2, np.array([8]))
    assert all_rows.uniform("a", 5)[1].tolist() == one.uniform("a", 9)[0, :5].tolist()
    assert all_rows.below(10, "a")[1] == one.below(10, "a")[0]
    assert (
        all_rows.at("a", np.array([1, 2]), np.array([4, 0])).tolist()
        == all_rows.uniform("a", 5)[[1, 2], [4, 0]].tolist()
    )
    assert not np.array_equal(all_rows.uniform("a"), all_rows.uniform("b"))


def test_poisson_lengths():
    weights = np.array(poisson(3.0, 0, 127))
    assert abs(weights.sum() - 1) < 1e-12 and abs(weights[3] - math.exp(-3) * 27 / 6) < 1e-12
    found = Rng(0, 0, np.arange(20_000)).pick(poisson(3.0, 0, 127), "size")
    assert abs(found.mean() - 3) < 3 * math.sqrt(3 / 20_000)
    truncated = 1 + Rng(0, 0, np.arange(20_000)).pick(poisson(3.0, 1, 39), "size")
    assert truncated.min() == 1 and abs(truncated.mean() - 3 / (1 - math.exp(-3))) < 0.05
