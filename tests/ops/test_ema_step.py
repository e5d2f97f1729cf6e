import numpy as np
from optest import OpSpec
from plmcore import Tensor, ops


def ema_step(average, param, decay, wide=False):
    average = (
        ops.copy(ops.cast(average, "float32")) if wide and average.dtype != "float64" else ops.copy(average)
    )
    ops.ema_step(average, param, decay)
    return average


spec = OpSpec(
    op=ema_step,
    ref=lambda average, param, decay, wide=False: average + (1 - decay) * (param - average),
    cases=[
        dict(average=(2, 3), param=(2, 3), decay=0.9),
        dict(average=(5, 3), param=(5, 3), decay=0.9),
        dict(average=(37,), param=(37,), decay=0.999, wide=True),
        dict(average=(3, 40001), param=(3, 40001), decay=0.0),
        dict(average=(0, 3), param=(0, 3), decay=0.9),
        dict(average=(), param=(), decay=1.0),
    ],
    dims={"average": "B 3", "param": "B 3"},
    errors=[
        (
            dict(average=(2, 3), param=(3,), decay=0.9),
            r"average must have the shape of param \[3\], got \[2, 3\]",
        ),
        (
            dict(average=(3,), param=np.ones(3), decay=0.9),
            r"average must have the dtype of param.* got float32\[3\] and float64\[3\]",
        ),
        (dict(average=(3,), param=(3,), decay=1.5), r"decay must be in \[0, 1\], got 1.5"),
    ],
    bench=dict(average=(4096, 768), param=(4096, 768), decay=0.99),
)
test_all = spec.tests()


def test_in_place():
    average = Tensor(np.zeros(3, np.float32))
    assert ops.ema_step(average, Tensor(np.ones(3, np.float32)), 0.75) is None
    assert average.numpy().tolist() == [0.25] * 3
