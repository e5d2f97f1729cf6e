import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, nn

x = np.ones((4, 50, 30), np.float32)


def test_dropout():
    drop = nn.Dropout(0.25)
    plm.seed(0)
    y = drop(Tensor(x)).numpy()
    assert set(np.unique(y)) == {0, np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02
    plm.seed(0)
    assert (drop(Tensor(x)).numpy() == y).all() and (drop(Tensor(x)).numpy() != y).any()


def test_locked():
    y = nn.LockedDropout(0.5)(Tensor(x)).numpy()
    assert (y == y[:, :1]).all() and 0.2 < (y[:, 0] == 0).mean() < 0.8


@pytest.mark.parametrize("kind", [nn.Dropout, nn.LockedDropout])
def test_nothing_outside_of_training(kind):
    t = Tensor(x)
    assert kind(0.5).eval()(t) is t and kind(0.0)(t) is t


def test_errors():
    for p in (1.0, -0.1, float("nan")):
        with pytest.raises(ValueError, match=r"LockedDropout: p must be in \[0, 1\), got"):
            nn.LockedDropout(p)
