import numpy as np
import pytest
from plmcore.compress import round_rows, rounding, row_scales

rng = np.random.default_rng(0)


def test_rows():
    w = np.array([[127, -63.5, 0.4, 62.5], [0, 0, 0, 0], [-0.254, 0.127, 0, 0.001]], np.float32)
    scale = row_scales(w)
    np.testing.assert_allclose(scale, [1, 0, 0.002], rtol=1e-6)
    assert scale.dtype == np.float32
    q = round_rows(w, scale)
    assert q.dtype == np.int8
    assert q.tolist() == [[127, -64, 0, 62], [0, 0, 0, 0], [-127, 64, 0, 0]]  # halves to the even neighbour


@pytest.mark.parametrize("std", [1e-30, 0.02, 1.0, 1e30])
def test_the_error_is_at_most_half_a_step(std):
    w = (rng.standard_normal((50, 64)) * std).astype(np.float32)
    scale = row_scales(w)
    q = round_rows(w, scale)
    assert np.abs(q).max(1).tolist() == [127] * 50
    error = np.abs(q.astype(np.float64) * scale[:, None] - w)
    assert (error <= scale[:, None].astype(np.float64) * 0.500001).all()


def test_values_too_small_for_a_scale_become_zeros():
    w = np.full((1, 4), 1e-45, np.float32)
    assert row_scales(w)[0] == 0 and not round_rows(w, row_scales(w)).any()


def test_blocks_change_nothing(monkeypatch):
    w = rng.standard_normal((100, 7)).astype(np.float32)
    whole = row_scales(w), round_rows(w, row_scales(w))
    monkeypatch.setattr(rounding, "BLOCK", 20)
    assert np.array_equal(whole[0], row_scales(w)) and np.array_equal(whole[1], round_rows(w, whole[0]))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0)])
def test_empty(shape):
    w = np.zeros(shape, np.float32)
    assert row_scales(w).shape == shape[:1] and round_rows(w, row_scales(w)).shape == shape


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_show_in_the_scale(bad):
    w = np.ones((3, 4), np.float32)
    w[1, 2] = bad
    assert np.isfinite(row_scales(w)).tolist() == [True, False, True]
