import math

import numpy as np
import plmcore as plm
import pytest
from plmcore import nn
from plmcore.nn import init

SHAPE = (300, 200)
STD = {
    "normal": (init.normal(0.02), 0.02),
    "uniform": (init.uniform(-3.0, 3.0), math.sqrt(3)),
    "xavier_uniform": (init.xavier_uniform(), math.sqrt(2 / 500)),
    "xavier_normal": (init.xavier_normal(2.0), 2 * math.sqrt(2 / 500)),
    "kaiming_uniform": (init.kaiming_uniform(), math.sqrt(2 / 200)),
    "kaiming_normal": (init.kaiming_normal(1.0), math.sqrt(1 / 200)),
    "truncated_normal": (init.truncated_normal(0.5), 0.5 * 0.8796),
    "zeros": (init.zeros, 0),
}


@pytest.mark.parametrize("name", STD)
def test_moments(name):
    draw, std = STD[name]
    plm.seed(1)
    x = draw(SHAPE).numpy()
    assert x.shape == SHAPE and x.dtype == np.float32
    assert x.std() == pytest.approx(std, rel=0.01)
    assert abs(x.mean()) <= std * 0.02
    plm.seed(1)
    assert (draw(SHAPE).numpy() == x).all()


def test_bounds():
    assert np.abs(init.truncated_normal(0.5)(SHAPE).numpy()).max() <= 1.0
    x = init.uniform(1.0, 2.0)(SHAPE).numpy()
    assert x.min() >= 1 and x.max() <= 2


def test_constants_and_dtype():
    assert init.ones((2,)).numpy().tolist() == [1, 1]
    assert init.constant(3.0)((2,)).numpy().tolist() == [3, 3]
    assert init.normal()((2,), "float64").dtype == "float64"
    assert init.truncated_normal(1.0, mean=5.0)((100,), "bfloat16").dtype == "bfloat16"


def test_a_fan_needs_two_axes():
    with pytest.raises(ValueError, match=r"at least two axes, got \[3\]"):
        init.xavier_uniform()((3,))


def test_zero_row():
    w = init.zero_row(init.normal(1.0), 2)((4, 3)).numpy()
    assert not w[2].any() and w[[0, 1, 3]].all()


def test_skipped_parameters_have_a_shape_and_no_memory():
    before = plm.memory_stats()["allocations"]
    with init.skipped():
        model = nn.Sequential(
            nn.Embedding(1000, 64, padding_idx=0), nn.Linear(64, 5), nn.LayerNorm(5), nn.MLP(5, 7)
        )
    assert plm.memory_stats()["allocations"] == before
    assert model.num_parameters() == 64000 + 64 * 5 + 5 + 10 + 35 + 7 + 35 + 5
    weight = model[0].weight
    assert (weight.shape, weight.ndim, weight.nbytes) == ((1000, 64), 2, 256000)
    with pytest.raises(
        RuntimeError,
        match=r"a parameter \[1000, 64\] of a model built inside nn.init.skipped\(\) has no values",
    ):
        weight.numpy()
    drawn = weight.drawn()
    assert (
        drawn.shape == (1000, 64)
        and drawn.requires_grad
        and not drawn.numpy()[0].any()
        and drawn.numpy()[1].any()
    )
    assert nn.Linear(2, 2).weight.numpy().any()  # only inside


def test_rows_in_equal_parts():
    draw = init.rows(init.constant(1.0), init.constant(2.0), init.constant(3.0))
    assert draw((6, 2)).numpy()[:, 1].tolist() == [1, 1, 2, 2, 3, 3]
    with pytest.raises(ValueError, match="7 rows cannot be split into 3 equal parts"):
        draw((7, 2))
