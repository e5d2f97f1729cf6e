import numpy as np
import pytest
from optest import OpSpec
from plmcore import Tensor, ops
from step_cases import dense, on_copies


def reference(
    param,
    grad,
    m,
    v,
    lr,
    rows=None,
    scale=1.0,
    beta1=0.9,
    beta2=0.999,
    eps=1e-6,
    weight_decay=0.01,
    step=1,
    adapt=True,
):
    g = dense(param, grad, rows) * scale
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    c1, c2 = (1 - beta1**step, 1 - beta2**step) if step else (1, 1)
    update = m / c1 / (np.sqrt(v / c2) + eps) + weight_decay * param
    long, short = np.linalg.norm(np.ravel(param)), np.linalg.norm(np.ravel(update))
    ratio = long / short if adapt and long and short else 1.0
    return param - lr * ratio * update, m, v


HYPER = dict(lr=0.01, beta1=0.8, beta2=0.95, eps=1e-6, weight_decay=0.1, step=3)
spec = OpSpec(
    op=on_copies(ops.lamb_step, ("m", "v")),
    ref=reference,
    cases=[
        dict(param=(2, 3), grad=(2, 3), m=(2, 3), v=(2, 3), **HYPER),
        dict(param=(7, 3), grad=(7, 3), m=(7, 3), v=(7, 3), **HYPER),
        dict(param=(37,), grad=(37,), m=(37,), v=(37,), lr=0.1, scale=0.25),
        dict(param=(37,), grad=(37,), m=(37,), v=(37,), lr=0.1, weight_decay=0.0),
        dict(param=(37,), grad=(37,), m=(37,), v=(37,), lr=0.1, weight_decay=0.0, adapt=False),
        dict(param=(7, 3), grad=(7, 3), m=(7, 3), v=(7, 3), **HYPER | dict(step=0)),
        dict(param=(7, 3), grad=(7, 3), m=(7, 3), v=(7, 3), **HYPER | dict(step=0, adapt=False)),
        dict(param=(3, 40001), grad=(3, 40001), m=(3, 40001), v=(3, 40001), lr=0.003, step=1000),
        dict(param=(), grad=(), m=(), v=(), lr=0.1),
        dict(param=(0, 3), grad=(0, 3), m=(0, 3), v=(0, 3), lr=0.1),
        dict(param=np.zeros((4, 3), np.float32), grad=(4, 3), m=(4, 3), v=(4, 3), lr=0.1),
        dict(param=(9, 5), grad=(3, 5), m=(9, 5), v=(9, 5), rows=np.array([0, 4, 8]), scale=0.5, **HYPER),
    ],
    dims={"param": "B 3", "grad": "B 3", "m": "B 3", "v": "B 3"},
    sample={"v": lambda rng, shape: rng.random(shape) + 0.01},
    errors=[
        (
            dict(param=(2, 3), grad=(3, 2), m=(2, 3), v=(2, 3), lr=0.1),
            r"gradient must have the shape of param \[2, 3\], got \[3, 2\]",
        ),
        (
            dict(param=(2, 3), grad=(2, 3), m=(2,), v=(2, 3), lr=0.1),
            r"moments must be float32\[2, 3\] .* got float32\[2\]",
        ),
        (
            dict(param=(2, 3), grad=(2, 3), m=(2, 3), v=(2, 3), lr=0.1, beta1=1.0),
            r"beta1 must be in \[0, 1\), got 1",
        ),
        (dict(param=(2, 3), grad=(2, 3), m=(2, 3), v=(2, 3), lr=0.1, step=-1), r"step counts from 0, got -1"),
    ],
    bench=dict(param=(4096, 768), grad=(4096, 768), m=(4096, 768), v=(4096, 768), lr=1e-3),
)
test_all = spec.tests()


@pytest.mark.parametrize("shape", [(11, 5), (300, 517)])
def test_the_step_is_as_long_as_the_tensor(shape):
    rng = np.random.default_rng(0)
    start = rng.standard_normal(shape).astype(np.float32)
    param, m, v = Tensor(start), Tensor(np.zeros(shape, np.float32)), Tensor(np.zeros(shape, np.float32))
    ops.lamb_step(param, Tensor(rng.standard_normal(shape).astype(np.float32)), m, v, lr=0.01)
    assert np.linalg.norm(param.numpy() - start) == pytest.approx(0.01 * np.linalg.norm(start), rel=1e-4)
