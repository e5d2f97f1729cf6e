"""What the tests of the optimiser steps share: a step as a function of its inputs, as the op harness wants
it.
"""

import numpy as np
from plmcore import Tensor, ops


def state_dtype(param):
    return "float64" if param.dtype == "float64" else "float32"


def on_copies(step, moments):
    """step(param, grad, *moments, ...) on copies of what it writes -> (param, *moments)."""

    def run(param, grad, rows=None, scale=None, **rest):
        state = {n: ops.copy(ops.cast(rest.pop(n), state_dtype(param))) for n in moments if n in rest}
        param = ops.copy(param)
        if rows is not None:
            grad = Tensor.row_sparse(rows, grad, param.shape[0])
        if scale is not None:
            rest["scale"] = ops.full((), scale, "float32", like=param)
        step(param, grad, **state, **rest)
        return (param, *state.values())

    run.__name__ = step.__name__
    return run


def dense(param, grad, rows):
    """A row-sparse gradient as an array of param's shape."""
    if rows is None:
        return grad
    full = np.zeros_like(param)
    full[rows] = grad
    return full


def assert_sparse_step_is_dense_step(step, shape, rows, n_moments, /, **options):
    """The row-sparse step gives the bits of the dense one; the lazy one gives them in its rows and touches no
    other.
    """
    rng = np.random.default_rng(0)
    n = len(rows)
    param = rng.standard_normal(shape).astype(np.float32)
    states = [rng.random(shape).astype(np.float32) for _ in range(n_moments)]
    values = rng.standard_normal((n, *shape[1:])).astype(np.float32)
    rows = np.asarray(rows, np.int64)

    def run(grad, **more):
        tensors = [Tensor(param), *(Tensor(s) for s in states)]
        for _ in range(3):
            step(tensors[0], grad, *tensors[1:], **options, **more)
        return [t.numpy() for t in tensors]

    sparse_grad = Tensor.row_sparse(Tensor(rows), Tensor(values), shape[0])
    dense_run, sparse_run = run(Tensor(dense(param, values, rows))), run(sparse_grad)
    for a, b in zip(dense_run, sparse_run):
        assert a.tobytes() == b.tobytes()
    for lazy, full, start in zip(run(sparse_grad, lazy=True), dense_run, [param, *states]):
        expected = start.copy()
        expected[rows] = full[rows]
        assert lazy.tobytes() == expected.tobytes()
