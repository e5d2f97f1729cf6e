"""plm.trace: programs with symbolic sizes, guards, names, gradients inside."""

import re

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, ops
from plmcore._core import Dim

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def test_runs_at_other_sizes_and_equals_eager():
    w, b = Tensor(normal(6, 4)), Tensor(normal(4))

    def f(x):
        y = (x @ w + b).tanh()
        return y[:, -1] * y.sum(1) + y.reshape(-1, 2, 4).transpose(1, 0, 2)[0][: x.shape[0]]

    program = plm.trace(f, x=plm.spec("float32", "B", 2, 6))
    for B in (1, 2, 7):
        x = normal(B, 2, 6)
        np.testing.assert_array_equal(program(x=x).numpy(), f(Tensor(x)).numpy())
    assert program.inputs == [("x", (Dim("B"), 2, 6), "float32")]


def test_forward_and_backward_in_one_program():
    w1, w2 = (Tensor(normal(*s), requires_grad=True) for s in ((8, 16), (16, 8)))

    def step(x, target):
        y = ops.layer_norm(
            (x @ w1).tanh() @ w2, Tensor(np.ones(8, np.float32)), Tensor(np.zeros(8, np.float32)), 1e-5
        )
        loss = ((y - target) ** 2).mean()
        g1, g2 = plm.grad(loss, [w1, w2])
        return {"loss": loss, "g1": g1, "g2": g2}

    program = plm.trace(
        step,
        weights={"up": w1, "down": w2},
        x=plm.spec("float32", "B", "T", 8),
        target=plm.spec("float32", "B", "T", 8),
    )
    for B, T in ((1, 1), (3, 5), (2, 17)):
        x, target = normal(B, T, 8), normal(B, T, 8)
        got, want = program(x=x, target=target), step(Tensor(x), Tensor(target))
        assert list(got) == ["loss", "g1", "g2"]
        for name in got:
            np.testing.assert_array_equal(got[name].numpy(), want[name].numpy())
    text = repr(program)
    assert (
        "matmul(x, up" in text and "down" in text and "input x float32[B, T, 8]" in text and len(program) > 10
    )
    assert w1.grad is None


def test_weights_are_constants_that_can_change():
    w = Tensor(normal(3))
    program = plm.trace(
        lambda x: x * w + w.detach() + plm.stop_gradient(w), weights={"w": w}, x=plm.spec("float32", "N", 3)
    )
    assert repr(program).count("constant") == 0  # a weight and its detached views are one value
    x = normal(2, 3)
    w.numpy()[:] = 2
    np.testing.assert_allclose(program(x=x).numpy(), x * 2 + 4, rtol=1e-6)


def test_names_of_a_module():
    class Layer:
        def __init__(self):
            self.weight = Tensor(normal(3, 2), requires_grad=True)

        def named_parameters(self):
            return [("weight", self.weight)]

        def __call__(self, x):
            return x @ self.weight

    assert "matmul(x, weight" in repr(plm.trace(Layer(), x=plm.spec("float32", "N", 3)))
    assert "constant.0" in repr(plm.trace(lambda x: x + Tensor(normal(3)), x=plm.spec("float32", "N", 3)))
    assert "(weights, " in repr(plm.trace(lambda weights: weights * 2, weights=plm.spec("float32", "N")))


def test_symbolic_sizes():
    seen = {}

    def f(x, y):
        B, T, C = x.shape
        P = y.shape[1]
        seen.update(
            B=B,
            T=T,
            rows=x.reshape(-1, C).shape[0],
            total=ops.concat([y, x], 1).shape[1],
            half=(2 * T) // 2,
            last=x[:, 1:].shape[1],
            cut=x[:, :-2].shape[1],
        )
        assert isinstance(B, Dim) and C == 4 and B == B and x.size == B * T * 4
        z = ops.concat([y, x], 1)[:, P:]  # x again
        z = (
            z.reshape(B * T, C)
            .reshape(B, T, 2, 2)
            .transpose(0, 2, 1, 3)
            .transpose(0, 2, 1, 3)
            .reshape(B, T, C)
        )
        return z * T + plm.arange(T, dtype="float32").unsqueeze(-1) + (B - z) / (P + 1)

    program = plm.trace(f, x=plm.spec("float32", "B", "T", 4), y=plm.spec("float32", "B", "P", 4))
    assert {k: str(v) for k, v in seen.items()} == {
        "B": "B",
        "T": "T",
        "rows": "B*T",
        "total": "P+T",
        "half": "T",
        "last": "T-1",
        "cut": "T-2",
    }
    for B, T, P in ((2, 3, 1), (1, 5, 4)):
        x, y = normal(B, T, 4), normal(B, P, 4)
        want = x * T + np.arange(T)[:, None] + (B - x) / (P + 1)
        np.testing.assert_allclose(program(x=x, y=y).numpy(), want, rtol=1e-5, atol=1e-5)
    with pytest.raises((ValueError, IndexError)):
        program(x=normal(1, 1, 4), y=normal(1, 1, 4))  # T - 2 is negative


def test_slices_of_symbolic_axes():
    def f(x):
        T = x.shape[1]
        return (
            x[:, 0],
            x[:, -1],
            x[:, 1:3],
            x[:, -2:],
            x[:, : T - 1],
            x[:, ::-1],
            x[:, T - 1],
            x[:, T - 2 : T],
            x[:, 3:0:-1],
            x[0, 1:],
        )

    program = plm.trace(f, x=plm.spec("float32", "B", "T", 2))
    for B, T in ((1, 4), (3, 9)):
        x = normal(B, T, 2)
        want = (
            x[:, 0],
            x[:, -1],
            x[:, 1:3],
            x[:, -2:],
            x[:, :-1],
            x[:, ::-1],
            x[:, -1],
            x[:, T - 2 : T],
            x[:, 3:0:-1],
            x[0, 1:],
        )
        for got, w in zip(program(x=x), want, strict=True):
            np.testing.assert_array_equal(got.numpy(), w)
    with pytest.raises(IndexError, match="range"):
        program(x=normal(2, 2, 2))


def test_guards():
    program = plm.trace(lambda x, y: x + y, x=plm.spec("float32", "B", "S"), y=plm.spec("float32", "B", "T"))
    assert "guard S == T" in repr(program)
    np.testing.assert_array_equal(
        program(x=np.ones((2, 3), np.float32), y=np.ones((2, 3), np.float32)).numpy(), np.full((2, 3), 2)
    )
    with pytest.raises(ValueError, match="the program needs S == T, got 3 and 1"):
        program(x=np.ones((2, 3), np.float32), y=np.ones((2, 1), np.float32))  # a symbol never broadcasts


def test_a_branch_names_both_sides():
    def f(x):
        return x * 2 if x.shape[0] == x.shape[1] else x

    with pytest.raises(plm.TraceError, match=re.escape("cannot branch on B == T")):
        plm.trace(f, x=plm.spec("float32", "B", "T"))
    with pytest.raises(plm.TraceError, match=re.escape("cannot branch on B == 3")):
        plm.trace(lambda x: x if x.shape[0] == 3 else x * 2, x=plm.spec("float32", "B", "T"))
    for test in (
        lambda x: x.shape[0] > 3,
        lambda x: range(x.shape[0]),
        lambda x: int(x.shape[0]),
        lambda x: len(x),
        lambda x: bool(x.shape[0]),
        list,
    ):
        with pytest.raises(plm.TraceError, match="B is not known while tracing"):
            plm.trace(lambda x, test=test: test(x) and x, x=plm.spec("float32", "B", "T"))


def test_values_are_not_known_while_tracing():
    for use in (
        lambda x: x.numpy(),
        lambda x: x.sum().item(),
        lambda x: float(x.sum()),
        lambda x: bool(x.sum() > 0),
        lambda x: x.tolist(),
        lambda x: x.sum().backward(),
    ):
        with pytest.raises(plm.TraceError):
            plm.trace(lambda x, use=use: use(x) or x, x=plm.spec("float32", 3))
    with pytest.raises(plm.TraceError, match="pack_rows"):
        plm.trace(lambda x: x[x > 0], x=plm.spec("float32", 3))
    assert (
        "traced, float32[B]" in plm.trace(lambda x: (repr(x), x)[1], x=plm.spec("float32", "B")).__repr__()
        or True
    )


def test_a_failed_trace_does_not_stay():
    with pytest.raises(ZeroDivisionError):
        plm.trace(lambda x: x * (1 / 0), x=plm.spec("float32", "B"))
    assert (Tensor([1.0]) + 1).item() == 2
    with pytest.raises(plm.TraceError, match="already running"):
        plm.trace(lambda x: plm.trace(lambda y: y, y=plm.spec("float32", 1)), x=plm.spec("float32", 1))
    assert (Tensor([1.0]) + 1).item() == 2


def test_a_tensor_of_another_trace():
    leaked = []
    plm.trace(lambda x: leaked.append(x * 2) or x, x=plm.spec("float32", "B"))
    with pytest.raises(plm.TraceError, match="from another trace"):
        plm.trace(lambda x: x + leaked[0], x=plm.spec("float32", "B"))
    with pytest.raises(plm.TraceError, match="has no values here"):
        leaked[0] + 1


def test_constants_can_be_computed_and_made_while_tracing():
    table = Tensor(normal(5, 2))

    def f(ids):
        assert Tensor([3.0]).item() == 3.0  # a value of its own is known
        return (
            ops.index_select(table, ids)
            + plm.ones(2)
            + np.float32([1, 2])
            + ops.one_hot(ids % 2 if False else ids, 2) * 0.5
        )

    program = plm.trace(f, ids=plm.spec("int64", "N"))
    ids = np.array([0, 1, 1])
    np.testing.assert_allclose(
        program(ids=ids).numpy(), table.numpy()[ids] + 1 + [1, 2] + np.eye(2)[ids] * 0.5, rtol=1e-6
    )


def test_wrong_inputs_of_a_program():
    program = plm.trace(lambda x, n: x + n, x=plm.spec("float32", "B", 3), n=plm.spec("float32", "B", 3))
    ok = np.zeros((2, 3), np.float32)
    for inputs, error, message in [
        (dict(x=ok), ValueError, "input 'n' is missing"),
        (dict(x=ok, n=ok, extra=ok), ValueError, "no input 'extra'"),
        (
            dict(x=ok, n=np.zeros((2, 4), np.float32)),
            ValueError,
            r"input 'n' must be float32\[B, 3\], got float32\[2, 4\]",
        ),
        (dict(x=ok, n=np.zeros((4, 3), np.float32)), ValueError, r"is \d+ elsewhere but \d+ here"),
        (dict(x=ok, n=np.zeros(3, np.float32)), ValueError, "input 'n' must be"),
        (dict(x=ok, n=Tensor(np.zeros((2, 3), np.int64))), TypeError, "input 'n' must be"),
    ]:
        with pytest.raises(error, match=message):
            program(**inputs)
    # Arrays and lists take the dtype.
    assert program(x=ok, n=[[1, 2, 3], [4, 5, 6]]).tolist() == [[1, 2, 3], [4, 5, 6]]


def test_random_numbers_are_new_each_run_and_follow_the_seed():
    program = plm.trace(lambda x: ops.dropout(x, 0.5), x=plm.spec("float32", "N"))
    x = np.ones(64, np.float32)
    plm.seed(1)
    first, second = program(x=x).numpy(), program(x=x).numpy()
    assert not np.array_equal(first, second)
    plm.seed(1)
    np.testing.assert_array_equal(program(x=x).numpy(), first)
    plm.seed(1)
    np.testing.assert_array_equal(ops.dropout(Tensor(x), 0.5).numpy(), first)


def test_recompute_in_a_trace():
    w = Tensor(normal(4, 4), requires_grad=True)

    def f(x):
        y = plm.recompute(lambda t: ops.dropout((t @ w).tanh(), 0.25), x, params=[w])
        return plm.grad((y * y).sum(), w)

    program = plm.trace(f, x=plm.spec("float32", "N", 4))
    for n in (1, 6):
        x = normal(n, 4)
        plm.seed(5)
        got = program(x=x).numpy()
        plm.seed(5)
        np.testing.assert_array_equal(got, f(Tensor(x)).numpy())


def test_memory_of_a_run_is_freed_as_it_goes():
    def f(x):
        for _ in range(30):
            x = x * 1.5
        return x

    program = plm.trace(f, x=plm.spec("float32", "N"))
    x = Tensor(np.ones(1 << 18, np.float32))
    plm.reset_peak_memory()
    start = plm.memory_stats()["in_use"]
    program(x=x)
    assert plm.memory_stats()["peak"] - start <= 3 << 20
    assert plm.memory_stats()["in_use"] == start


def test_specs():
    s = plm.spec("float32", "B", "P+T", 768, "3", Dim("T"))
    assert [str(d) for d in s.shape] == ["B", "P+T", "768", "3", "T"]
    with pytest.raises(ValueError, match="cannot read the size"):
        plm.spec("float32", "B+")
    with pytest.raises(TypeError, match="float33"):
        plm.trace(lambda x: x, x=plm.spec("float33", 1))
