import numpy as np
import pytest
from optest import OpSpec
from plmcore import Tensor, ops
from step_cases import assert_sparse_step_is_dense_step, dense, on_copies


def reference(
    param, grad, m, v, lr, rows=None, scale=1.0, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01, step=1
):
    g = dense(param, grad, rows) * scale
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    update = m / (1 - beta1**step) / (np.sqrt(v / (1 - beta2**step)) + eps)
    return param * (1 - lr * weight_decay) - lr * update, m, v


HYPER = dict(lr=0.01, beta1=0.8, beta2=0.95, eps=1e-6, weight_decay=0.1, step=3)
spec = OpSpec(
    op=on_copies(ops.adamw_step, ("m", "v")),
    ref=reference,
    cases=[
        dict(param=(2, 3), grad=(2, 3), m=(2, 3), v=(2, 3), **HYPER),
        dict(param=(7, 3), grad=(7, 3), m=(7, 3), v=(7, 3), **HYPER),
        dict(param=(37,), grad=(37,), m=(37,), v=(37,), lr=0.1, scale=0.25),
        dict(param=(3, 40001), grad=(3, 40001), m=(3, 40001), v=(3, 40001), lr=0.003, step=1000),
        dict(param=(), grad=(), m=(), v=(), lr=0.1),
        dict(param=(0, 3), grad=(0, 3), m=(0, 3), v=(0, 3), lr=0.1),
        dict(param=(9, 5), grad=(3, 5), m=(9, 5), v=(9, 5), rows=np.array([0, 4, 8]), scale=0.5, **HYPER),
        dict(param=(9, 5), grad=(0, 5), m=(9, 5), v=(9, 5), rows=np.zeros(0, np.int64), **HYPER),
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
            dict(param=(2, 3), grad=np.ones((2, 3)), m=(2, 3), v=(2, 3), lr=0.1),
            r"one dtype, got float32\[2, 3\] and float64",
        ),
        (dict(param=(2, 3), grad=(2, 3), m=(2, 3), v=(2, 3), lr=-0.1), r"lr must not be negative, got -0.1"),
        (
            dict(param=(2, 3), grad=(2, 3), m=(2, 3), v=(2, 3), lr=0.1, beta1=1.0),
            r"beta1 must be in \[0, 1\), got 1",
        ),
        (dict(param=(2, 3), grad=(2, 3), m=(2, 3), v=(2, 3), lr=0.1, step=0), r"step counts from 1, got 0"),
        (
            dict(param=(4, 3), grad=(2, 2), m=(4, 3), v=(4, 3), lr=0.1, rows=np.array([0, 1])),
            r"values of a row-sparse gradient must be \[2, 3\], got \[2, 2\]",
        ),
        (
            dict(param=(4, 3), grad=(2, 3), m=(4, 3), v=(4, 3), lr=0.1, rows=np.array([1, 4])),
            r"row 4 at position 1 is out of range for 4 rows",
        ),
        (
            dict(param=(4, 3), grad=(2, 3), m=(4, 3), v=(4, 3), lr=0.1, rows=np.array([-1, 2])),
            r"row -1 at position 0 is out of range",
        ),
        (
            dict(param=(4, 3), grad=(2, 3), m=(4, 3), v=(4, 3), lr=0.1, rows=np.array([2, 2])),
            r"rows must be sorted and unique, got 2 before 2",
        ),
    ],
    bench=dict(param=(4096, 768), grad=(4096, 768), m=(4096, 768), v=(4096, 768), lr=1e-3),
)
test_all = spec.tests()


@pytest.mark.parametrize(
    "shape, rows",
    [
        ((11, 5), [0, 3, 10]),
        ((300, 129), range(5, 300, 7)),
        ((70, 1024), [69]),
        ((6,), [1, 5]),
        ((5, 2, 3), []),
        ((4, 0), [1]),
    ],
)
def test_row_sparse(shape, rows):
    assert_sparse_step_is_dense_step(
        ops.adamw_step, shape, list(rows), 2, scale=Tensor(np.float32(0.37)), **HYPER
    )
