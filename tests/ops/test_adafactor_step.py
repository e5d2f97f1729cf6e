import numpy as np
import pytest
from optest import OpSpec
from plmcore import Tensor, ops
from step_cases import dense, on_copies


def reference(
    param,
    grad,
    v,
    lr,
    m=None,
    rows=None,
    scale=1.0,
    eps=1e-30,
    weight_decay=0.0,
    power=0.8,
    floor=1e-3,
    threshold=1.0,
    relative=True,
    step=1,
):
    g = dense(param, grad, rows) * scale
    beta, square = 1 - step**-power, g * g + eps
    if param.ndim < 2:
        v = beta * v + (1 - beta) * square
        update = g / np.sqrt(v)
    else:
        m = beta * m + (1 - beta) * square.mean(-1)
        v = beta * v + (1 - beta) * square.reshape(-1, square.shape[-1]).mean(0)
        update = g / np.sqrt(m[..., None] / m.mean() * v)
    if param.size == 0:
        return (param, m, v) if param.ndim >= 2 else (param, v)
    rms = lambda x: np.sqrt((x * x).mean())
    size = max(floor, rms(param)) if relative else 1.0
    param = param * (1 - lr * weight_decay) - lr * size * update / max(1.0, rms(update) / threshold)
    return (param, m, v) if param.ndim >= 2 else (param, v)


def matrix(*shape):
    return dict(param=shape, grad=shape, m=shape[:-1], v=shape[-1:])


HYPER = dict(lr=0.01, weight_decay=0.1, step=3)
positive = lambda rng, shape: rng.random(shape) + 0.01
spec = OpSpec(
    op=on_copies(ops.adafactor_step, ("m", "v")),
    ref=reference,
    cases=[
        dict(**matrix(2, 3), **HYPER),
        dict(**matrix(7, 3), **HYPER),
        dict(**matrix(33, 129), lr=0.1, scale=0.25, step=1),
        dict(**matrix(1100, 37), lr=0.1, relative=False, step=10),
        dict(**matrix(2, 5, 9), lr=0.1, threshold=0.1, power=0.5, step=2),
        dict(param=(37,), grad=(37,), v=(37,), lr=0.1, scale=0.25, **{"step": 5}),
        dict(param=(40001,), grad=(40001,), v=(40001,), lr=0.003, step=1000, weight_decay=0.1),
        dict(param=(), grad=(), v=(), lr=0.1),
        dict(param=np.zeros((4, 3), np.float32), grad=(4, 3), m=(4,), v=(3,), lr=0.1, floor=0.5),
        dict(param=(9, 5), grad=(3, 5), m=(9,), v=(5,), rows=np.array([0, 4, 8]), scale=0.5, **HYPER),
    ],
    dims={"param": "B 3", "grad": "B 3", "m": "B", "v": "3"},
    sample={"m": positive, "v": positive},
    errors=[
        (
            dict(param=(2, 3), grad=(3, 2), m=(2,), v=(3,), lr=0.1),
            r"gradient must have the shape of param \[2, 3\], got \[3, 2\]",
        ),
        (
            dict(param=(2, 3), grad=(2, 3), m=(3,), v=(3,), lr=0.1),
            r"m must be float32\[2\] for a param float32\[2, 3\], got float32\[3\]",
        ),
        (
            dict(param=(2, 3), grad=(2, 3), m=(2,), v=(2, 3), lr=0.1),
            r"v must be float32\[3\] for a param float32\[2, 3\], got float32\[2, 3\]",
        ),
        (
            dict(param=(2, 3), grad=(2, 3), v=(3,), lr=0.1),
            r"a matrix has m and v, a vector v alone; param is float32\[2, 3\]",
        ),
        (dict(param=(3,), grad=(3,), m=(3,), v=(3,), lr=0.1), r"a vector v alone"),
        (dict(param=(2, 3), grad=(2, 3), m=(2,), v=(3,), lr=-1.0), r"lr must not be negative, got -1"),
        (
            dict(param=(2, 3), grad=(2, 3), m=(2,), v=(3,), lr=0.1, threshold=0.0),
            r"threshold must be positive, got 0",
        ),
        (dict(param=(2, 3), grad=(2, 3), m=(2,), v=(3,), lr=0.1, step=0), r"step counts from 1, got 0"),
    ],
    bench=dict(**matrix(4096, 768), lr=1e-3),
)
test_all = spec.tests()


def test_an_empty_matrix_stays():
    ops.adafactor_step(*(Tensor(np.zeros(s, np.float32)) for s in ((0, 3), (0, 3), (3,), (0,))), lr=0.1)


@pytest.mark.parametrize("gradient", [1e-20, 1.0, 1e15])
def test_the_first_step_is_lr_times_the_parameter_for_any_gradient(gradient):
    start = np.full((8, 16), 2.0, np.float32)
    param = Tensor(start)
    grad = Tensor(np.full((8, 16), gradient, np.float32))
    ops.adafactor_step(param, grad, Tensor(np.zeros(16, np.float32)), Tensor(np.zeros(8, np.float32)), lr=0.1)
    expected = 1.8 if gradient > 1e-10 else 2.0
    np.testing.assert_allclose(param.numpy(), expected, rtol=1e-5)
