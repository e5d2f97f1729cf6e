import numpy as np
import pytest
from optest import OpSpec
from plmcore import Tensor, ops
from step_cases import assert_sparse_step_is_dense_step, dense, on_copies


def reference(param, grad, v, lr, rows=None, scale=1.0, eps=1e-10, weight_decay=0.0):
    g = dense(param, grad, rows) * scale + weight_decay * param
    v = v + g * g
    return param - lr * g / (np.sqrt(v) + eps), v


HYPER = dict(lr=0.05, eps=1e-6, weight_decay=0.1)
spec = OpSpec(
    op=on_copies(ops.adagrad_step, ("v",)),
    ref=reference,
    cases=[
        dict(param=(2, 3), grad=(2, 3), v=(2, 3), **HYPER),
        dict(param=(7, 3), grad=(7, 3), v=(7, 3), **HYPER),
        dict(param=(37,), grad=(37,), v=(37,), lr=0.1, scale=0.25),
        dict(param=(3, 40001), grad=(3, 40001), v=(3, 40001), lr=0.003),
        dict(param=(), grad=(), v=(), lr=0.1),
        dict(param=(0, 3), grad=(0, 3), v=(0, 3), lr=0.1),
        dict(param=(9, 5), grad=(3, 5), v=(9, 5), rows=np.array([0, 4, 8]), scale=0.5, **HYPER),
    ],
    dims={"param": "B 3", "grad": "B 3", "v": "B 3"},
    sample={"v": lambda rng, shape: rng.random(shape) + 0.01},
    errors=[
        (
            dict(param=(2, 3), grad=(3, 2), v=(2, 3), lr=0.1),
            r"gradient must have the shape of param \[2, 3\], got \[3, 2\]",
        ),
        (
            dict(param=(2, 3), grad=(2, 3), v=(2,), lr=0.1),
            r"moments must be float32\[2, 3\] .* got float32\[2\]",
        ),
        (dict(param=(2, 3), grad=(2, 3), v=(2, 3), lr=-0.1), r"lr must not be negative, got -0.1"),
        (dict(param=(2, 3), grad=(2, 3), v=(2, 3), lr=0.1, eps=-1.0), r"eps must not be negative, got -1"),
        (
            dict(param=(4, 3), grad=(2, 3), v=(4, 3), lr=0.1, rows=np.array([2, 2])),
            r"rows must be sorted and unique",
        ),
    ],
    bench=dict(param=(4096, 768), grad=(4096, 768), v=(4096, 768), lr=1e-3),
)
test_all = spec.tests()


@pytest.mark.parametrize(
    "shape, rows", [((11, 5), [0, 3, 10]), ((300, 129), range(5, 300, 7)), ((6,), [1, 5])]
)
def test_row_sparse(shape, rows):
    assert_sparse_step_is_dense_step(
        ops.adagrad_step, shape, list(rows), 1, scale=Tensor(np.float32(0.37)), **HYPER
    )
