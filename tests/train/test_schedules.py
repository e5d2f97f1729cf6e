import math

import plmcore as plm
import pytest
from plmcore.train import schedules


def rates(schedule, steps):
    return [schedule(s) for s in range(steps)]


def test_linear():
    r = rates(schedules.linear(steps=100, warmup=10), 100)
    assert r[0] == pytest.approx(0.1) and r[9] == r[10] == 1.0
    assert r[55] == pytest.approx(0.5) and r[99] == pytest.approx(1 / 90)


def test_cosine_ends_at_its_floor():
    r = rates(schedules.cosine(steps=200, warmup=20, floor=0.1), 201)
    assert max(r) == r[20] == 1.0 and r[110] == pytest.approx(0.55) and r[200] == pytest.approx(0.1)


def test_polynomial():
    assert schedules.polynomial(steps=10, power=2.0)(5) == pytest.approx(0.25)


def test_noam_is_the_published_formula():
    rate = schedules.noam(width=512, warmup=4000)
    for s in (1, 100, 4000, 4001, 100_000):
        assert rate(s - 1) == pytest.approx(512**-0.5 * min(s**-0.5, s * 4000**-1.5))
    assert rate(3999) == pytest.approx(6.99e-4, rel=1e-3)  # the peak of the base model


def test_t5():
    rate = schedules.inverse_sqrt()
    assert rate(0) == rate(9_999) == 0.01 and rate(39_999) == pytest.approx(0.005)


def test_slanted_triangle():
    """ULMFiT: eta = (1 + p (ratio - 1)) / ratio, p the height of the triangle."""
    r = rates(schedules.slanted(steps=100, cut=0.1, ratio=32), 100)
    assert r[9] == max(r) == 1.0 and r[99] == pytest.approx(1 / 32)
    assert r[4] == pytest.approx((1 + 0.5 * 31) / 32) and r[54] == pytest.approx((1 + 0.5 * 31) / 32)


def test_halving():
    rate = schedules.halving(every=10, start=50)
    assert [rate(s) for s in (0, 49, 50, 59, 60, 79)] == [1, 1, 0.5, 0.5, 0.25, 0.125]


def test_cross_view_training():
    assert schedules.slowing()(4999) == pytest.approx(1 / (1 + 0.005 * math.sqrt(5000)))


@pytest.mark.parametrize("rise", schedules.RISES)
def test_every_rise_reaches_the_top_and_never_is_0(rise):
    r = rates(schedules.constant(warmup=7, rise=rise), 9)
    assert r[0] > 0 and r[6:] == [1, 1, 1] and r == sorted(r)


@pytest.mark.parametrize("kind, options", [
    ("constant", {}), ("linear", dict(steps=1)), ("cosine", dict(steps=1, warmup=1)),
    ("polynomial", dict(steps=2, power=0.5)),
    ("noam", dict(width=4, warmup=1)), ("inverse_sqrt", {}), ("slanted", dict(steps=1)),
    ("halving", dict(every=1)), ("slowing", {}),
])  # fmt: skip
def test_the_shortest_run_moves(kind, options):
    assert 0 < schedules.KINDS[kind](**options)(0) <= 1


def test_every_kind_is_tried_above():
    assert set(schedules.KINDS) == {
        "constant", "linear", "polynomial", "cosine", "noam", "inverse_sqrt", "slanted", "halving", "slowing",
    }  # fmt: skip


def test_errors():
    with pytest.raises(plm.ArgumentError, match="warmup must be at least 0, got -1"):
        schedules.linear(steps=3, warmup=-1)
    with pytest.raises(plm.ArgumentError, match="a rise is one of linear, .* got 'steep'"):
        schedules.constant(rise="steep")
