import numpy as np
import pytest
from optest import OpSpec
from plmcore import Tensor, ops
from step_cases import assert_sparse_step_is_dense_step, dense, on_copies


def reference(
    param, grad, lr, velocity=None, rows=None, scale=1.0, momentum=0.0, nesterov=False, weight_decay=0.0
):
    g = dense(param, grad, rows) * scale + weight_decay * param
    if velocity is None:
        return param - lr * g
    velocity = momentum * velocity + g
    return param - lr * (g + momentum * velocity if nesterov else velocity), velocity


HYPER = dict(lr=0.1, momentum=0.9, weight_decay=0.01)
spec = OpSpec(
    op=on_copies(ops.sgd_step, ("velocity",)),
    ref=reference,
    cases=[
        dict(param=(2, 3), grad=(2, 3), velocity=(2, 3), **HYPER),
        dict(param=(7, 3), grad=(7, 3), velocity=(7, 3), **HYPER),
        dict(param=(37,), grad=(37,), velocity=(37,), nesterov=True, scale=0.25, **HYPER),
        dict(param=(3, 40001), grad=(3, 40001), lr=0.3),
        dict(param=(5, 5), grad=(5, 5), lr=0.3, weight_decay=0.1, scale=2.0),
        dict(param=(), grad=(), lr=0.1),
        dict(param=(0, 3), grad=(0, 3), velocity=(0, 3), **HYPER),
        dict(param=(9, 5), grad=(3, 5), velocity=(9, 5), rows=np.array([0, 4, 8]), **HYPER),
        dict(param=(9, 5), grad=(3, 5), rows=np.array([0, 4, 8]), lr=0.1),
    ],
    dims={"param": "B 3", "grad": "B 3", "velocity": "B 3"},
    errors=[
        (dict(param=(2, 3), grad=(3,), lr=0.1), r"gradient must have the shape of param \[2, 3\], got \[3\]"),
        (dict(param=(2, 3), grad=(2, 3), velocity=(3,), lr=0.1), r"moments must be float32\[2, 3\]"),
        (dict(param=np.array([1, 2]), grad=(2,), lr=0.1), r"needs a float dtype, got int64\[2\]"),
        (dict(param=(2,), grad=(2,), velocity=(2,), lr=0.1, momentum=-1.0), r"momentum must not be negative"),
        (dict(param=(2,), grad=(2,), lr=0.1, weight_decay=-1.0), r"weight_decay must not be negative"),
        (
            dict(param=(4, 3), grad=(1, 3), lr=0.1, rows=np.array([1 << 40])),
            r"row 1099511627776 at position 0 is out of range for 4 rows",
        ),
    ],
    bench=dict(param=(4096, 768), grad=(4096, 768), lr=1e-3),
)
test_all = spec.tests()


@pytest.mark.parametrize(
    "options", [dict(), dict(momentum=0.9), dict(momentum=0.9, nesterov=True), dict(weight_decay=0.1)]
)
@pytest.mark.parametrize(
    "shape, rows", [((11, 5), [0, 3, 10]), ((300, 129), range(5, 300, 7)), ((6,), [1, 5])]
)
def test_row_sparse(shape, rows, options):
    assert_sparse_step_is_dense_step(
        ops.sgd_step,
        shape,
        list(rows),
        "momentum" in options,
        lr=0.1,
        scale=Tensor(np.float32(0.37)),
        **options,
    )


def test_a_scale_that_is_not_finite_reaches_every_row():
    param = Tensor(np.ones((3, 2), np.float32))
    ops.sgd_step(
        param,
        Tensor.row_sparse(Tensor(np.array([1])), Tensor(np.ones((1, 2), np.float32)), 3),
        lr=0.1,
        scale=Tensor(np.float32("nan")),
    )
    assert np.isnan(param.numpy()).all()
