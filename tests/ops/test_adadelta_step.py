import numpy as np
import pytest
from optest import OpSpec
from plmcore import Tensor, ops
from step_cases import assert_sparse_step_is_dense_step, dense, on_copies


def reference(param, grad, m, v, lr=1.0, rows=None, scale=1.0, rho=0.95, eps=1e-6, weight_decay=0.0):
    g = dense(param, grad, rows) * scale + weight_decay * param
    v = rho * v + (1 - rho) * g * g
    d = g * np.sqrt(m + eps) / np.sqrt(v + eps)
    return param - lr * d, rho * m + (1 - rho) * d * d, v


def three(*shape):
    return dict(param=shape, grad=shape, m=shape, v=shape)


def positive(rng, shape):
    return rng.random(shape) + 0.01


HYPER = dict(lr=0.5, rho=0.9, eps=1e-3, weight_decay=0.1)
spec = OpSpec(
    op=on_copies(ops.adadelta_step, ("m", "v")),
    ref=reference,
    cases=[
        three(2, 3) | HYPER,
        three(7, 3) | HYPER,
        three(37) | dict(lr=0.1, scale=0.25),
        three(3, 40001) | dict(lr=1.0),
        three() | dict(lr=0.1),
        three(0, 3) | dict(lr=0.1),
        dict(param=(9, 5), grad=(3, 5), m=(9, 5), v=(9, 5), rows=np.array([0, 4, 8]), scale=0.5, **HYPER),
    ],
    dims={"param": "B 3", "grad": "B 3", "m": "B 3", "v": "B 3"},
    sample={"m": positive, "v": positive},
    errors=[
        (three(2, 3) | dict(grad=(3, 2)), r"gradient must have the shape of param \[2, 3\], got \[3, 2\]"),
        (three(2, 3) | dict(m=(2,)), r"moments must be float32\[2, 3\] .* got float32\[2\]"),
        (three(2, 3) | dict(lr=-0.1), r"lr must not be negative, got -0.1"),
        (three(2, 3) | dict(rho=1.0), r"rho must be in \[0, 1\), got 1"),
        (three(2, 3) | dict(eps=0.0), r"eps must be above 0, got 0"),
        (
            three(4, 3) | dict(grad=(2, 3), rows=np.array([2, 2])),
            r"rows must be sorted and unique",
        ),
    ],
    bench=three(4096, 768) | dict(lr=1e-3),
)
test_all = spec.tests()


@pytest.mark.parametrize(
    "shape, rows", [((11, 5), [0, 3, 10]), ((300, 129), range(5, 300, 7)), ((6,), [1, 5])]
)
def test_row_sparse(shape, rows):
    assert_sparse_step_is_dense_step(
        ops.adadelta_step, shape, list(rows), 2, scale=Tensor(np.float32(0.37)), **HYPER
    )
