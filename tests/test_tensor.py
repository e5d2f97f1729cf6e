"""plm.Tensor: what it is made from, arithmetic, methods, printing, pickling. NumPy is the reference."""

import copy
import gc
import operator
import pickle
import weakref

import ml_dtypes
import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, ops

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool"]


def equal(tensor, array):
    np.testing.assert_array_equal(tensor.numpy(), array)


# ---- making ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_from_array_and_back(dtype):
    a = (np.arange(12).reshape(3, 4) % 5).astype(dtype)
    t = Tensor(a)
    assert (t.dtype, t.shape, t.ndim, t.size, t.device, t.nbytes) == (dtype, (3, 4), 2, 12, "cpu", a.nbytes)
    assert t.numpy().dtype == a.dtype
    equal(t, a)
    assert t.tolist() == a.tolist()


def test_bfloat16_goes_through_ml_dtypes():
    a = np.arange(6, dtype=np.float32).reshape(2, 3).astype(ml_dtypes.bfloat16)
    t = Tensor(a)
    assert t.dtype == "bfloat16" and t.numpy().dtype == ml_dtypes.bfloat16
    equal(t, a)
    equal(Tensor([0.1, 3.0], dtype="bfloat16"), np.array([0.1, 3.0], ml_dtypes.bfloat16))
    equal(Tensor(np.float32([0.1, 3.0]), dtype=ml_dtypes.bfloat16), np.array([0.1, 3.0], ml_dtypes.bfloat16))
    assert Tensor(ml_dtypes.bfloat16(1.5)).item() == 1.5
    shared = plm.from_numpy(a)
    shared.numpy()[0, 0] = 7
    assert a[0, 0] == 7


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (3.5, "float32", ()), (3, "int64", ()), (True, "bool", ()), ([1.0, 2.0], "float32", (2,)),
        ([[1, 2], [3, 4]], "int64", (2, 2)), ([True, False], "bool", (2,)),
        ([], "float32", (0,)), ([[], []], "float32", (2, 0)), (np.float64(2.5), "float64", ()),
        (np.int32(2), "int32", ()), (np.bool_(True), "bool", ()), ((1, 2), "int64", (2,)),
        (range(3), "int64", (3,)), (np.array(5.0, np.float16), "float16", ()),
        (np.zeros((3, 0, 2)), "float64", (3, 0, 2)), (2**40, "int64", ()),
    ],
)  # fmt: skip
def test_dtype_of_python_values(value, dtype, shape):
    t = Tensor(value)
    assert (t.dtype, t.shape) == (dtype, shape)
    equal(t, np.asarray(value))


@pytest.mark.parametrize(
    "target",
    [
        "float64",
        "float32",
        "bfloat16",
        "float16",
        "int64",
        "int32",
        "int8",
        "uint8",
        "bool",
        np.float32,
        np.dtype("int32"),
    ],
)
def test_dtype_argument_and_astype(target):
    a = np.array([[0.0, 1.5], [2.25, 3.0]])
    name = target if isinstance(target, str) else np.dtype(target).name
    want = a.astype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    for t in (
        Tensor(a, dtype=target),
        Tensor(a).astype(target),
        Tensor(a).to(target),
        Tensor(a.astype(np.int16) * 0 + a, dtype=target),
    ):
        assert t.dtype == name
        equal(t, want)
    assert Tensor(np.arange(3, dtype=np.uint16), dtype="int32").tolist() == [0, 1, 2]


def test_arrays_of_any_layout():
    a = np.arange(24, dtype=np.float32).reshape(4, 6)
    frozen = a.copy()
    frozen.flags.writeable = False
    field = np.zeros(5, dtype=[("a", "u1"), ("x", "<f4")])["x"]  # misaligned
    for x in (
        a.T,
        a[::2, ::-1],
        a[:, 1:2],
        frozen,
        a.astype(">f4"),
        np.asfortranarray(a),
        np.broadcast_to(a[0], (3, 6)),
        field,
    ):
        equal(Tensor(x), x)
        assert Tensor(x).dtype == "float32"


def test_unknown_types_are_refused():
    for bad in (
        np.array(["a"]),
        np.array([1j]),
        np.zeros(2, np.int16),
        np.array([object()]),
        "text",
        None,
        [[1.0], [1.0, 2.0]],
    ):
        with pytest.raises((TypeError, ValueError)):
            Tensor(bad)
    with pytest.raises(TypeError, match=r"float128|longdouble"):
        Tensor(np.zeros(2, np.longdouble))
    with pytest.raises(TypeError, match="float31"):
        Tensor([1.0], dtype="float31")
    with pytest.raises(RuntimeError, match="tpu"):
        Tensor([1.0], device="tpu")
    with pytest.raises(TypeError, match="requires_grad needs a float dtype"):
        Tensor([1], requires_grad=True)


def test_an_array_is_copied_and_a_tensor_is_shared():
    a = np.zeros(3, np.float32)
    t = Tensor(a)
    a[0] = 1
    assert t.tolist() == [0, 0, 0]
    Tensor(t).numpy()[1] = 5
    assert t.tolist() == [0, 5, 0]


def test_from_numpy_shares_memory_and_keeps_it_alive():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = plm.from_numpy(a)
    a[0, 0] = 9
    t.numpy()[1, 1] = 8
    assert t.tolist() == a.tolist() == [[9, 1, 2], [3, 8, 5]]
    watch = weakref.ref(a)
    del a
    gc.collect()
    assert watch() is not None and (t + 0).sum().item() == 28
    del t
    gc.collect()
    assert watch() is None


def test_from_numpy_says_what_it_cannot_share():
    a = np.zeros((4, 4), np.float32)
    for x in (a.T[:, 1:], a[:, ::2], a.astype(">f4")):
        with pytest.raises(ValueError, match="C-contiguous, aligned and in native byte order"):
            plm.from_numpy(x)
    with pytest.raises(TypeError, match="needs a NumPy array, got list"):
        plm.from_numpy([1.0])
    assert plm.from_numpy(np.zeros((0, 3))).shape == (0, 3)


def test_read_only_memory_stays_read_only():
    a = np.zeros(3, np.float32)
    a.flags.writeable = False
    t = plm.from_numpy(a)
    assert not t.numpy().flags.writeable
    assert (t + 1).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only memory"):
        ops.ema_step(t, Tensor([1.0, 1.0, 1.0]), 0.5)
    assert t.copy().numpy().flags.writeable


def test_numpy_shares_memory_but_does_not_hold_the_graph():
    x = Tensor(np.ones(1000, np.float32), requires_grad=True)
    before = plm.memory_stats()["in_use"]
    y = x * 2
    for _ in range(10):
        y = y * y
    a = y.numpy()
    del y
    assert plm.memory_stats()["in_use"] - before <= 8192
    assert np.isinf(a[0])  # 2^1024


def test_making():
    equal(plm.zeros(2, 3), np.zeros((2, 3), np.float32))
    equal(plm.ones((2,), dtype="int32"), np.ones(2, np.int32))
    equal(plm.full([2, 1], 2.5, dtype="float64"), np.full((2, 1), 2.5))
    equal(plm.zeros(()), np.zeros((), np.float32))
    for args in ((5,), (2, 7), (7, 2, -2), (0, 1, 0.25), (-3, 3)):
        equal(plm.arange(*args), np.arange(*args))
    assert (plm.arange(3).dtype, plm.arange(0.0, 1.0, 0.5).dtype, plm.arange(3, dtype="float32").dtype) == (
        "int64",
        "float32",
        "float32",
    )
    assert plm.ones(2, requires_grad=True).requires_grad
    plm.seed(3)
    a, b = plm.rand(100, 3), plm.randn(1000)
    plm.seed(3)
    equal(plm.rand(100, 3), a.numpy())
    assert (
        a.numpy().min() >= 0
        and a.numpy().max() < 1
        and abs(b.numpy().mean()) < 0.2
        and abs(b.numpy().std() - 1) < 0.1
    )


# ---- arithmetic ----

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv]
COMPARE = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("op", [*BINARY, *COMPARE, operator.pow])
def test_operators_with_tensors_numbers_and_arrays_on_both_sides(op):
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(0.5, 2, (3, 4)).astype(np.float32) for _ in range(2))
    b[0] = a[0]
    t = Tensor(a)
    np.testing.assert_allclose(op(t, Tensor(b)).numpy(), op(a, b), rtol=1e-6)
    np.testing.assert_allclose(op(t, b[0]).numpy(), op(a, b[0]), rtol=1e-6)
    np.testing.assert_allclose(op(b, t).numpy(), op(b, a), rtol=1e-6)
    np.testing.assert_allclose(op(t, b.astype(np.float64)).numpy(), op(a, b), rtol=1e-6)
    for number in (2, 1.5, -0.5, 0.5, True, np.float64(1.25), np.float32(1.25), np.int64(3), 0):
        if op is operator.pow and number == 0:
            continue
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(
                op(t, number).numpy(), op(a, np.float32(number)), rtol=2e-6, err_msg=str(number)
            )
            if number >= 0:
                np.testing.assert_allclose(
                    op(number, t).numpy(), op(np.float32(number), a), rtol=2e-6, err_msg=str(number)
                )
        assert op(t, number).dtype == ("bool" if op in COMPARE else "float32")
    assert isinstance(op(b, t), Tensor) and isinstance(op(np.float32(2), t), Tensor)


def test_unary_and_matmul():
    a = np.array([[1.0, -2.0], [0.0, 3.0]], np.float32)
    t = Tensor(a)
    equal(-t, -a)
    equal(+t, a)
    equal(abs(t), abs(a))
    equal(t @ t, a @ a)
    equal(t @ a, a @ a)
    equal(a @ t, a @ a)
    equal(~(t > 0), ~(a > 0))
    equal((t > 0) & (t < 3), (a > 0) & (a < 3))
    equal((t > 2) | (t < 0), (a > 2) | (a < 0))
    t += 1
    equal(t, a + 1)


def test_mixed_dtypes():
    i, f, b = Tensor([1, 2, 3]), Tensor([0.5, 1.5, 2.5]), Tensor([True, False, True])
    for t, dtype, value in [
        (i + f, "float32", [1.5, 3.5, 5.5]),
        (f * b, "float32", [0.5, 0, 2.5]),
        (i + b, "int64", [2, 2, 4]),
        (i.astype("int32") + i, "int64", [2, 4, 6]),
        (i / 2, "float32", [0.5, 1, 1.5]),
        (i / i, "float32", [1, 1, 1]),
        (i + 1, "int64", [2, 3, 4]),
        (i * 0.5, "float32", [0.5, 1, 1.5]),
        (1 - i, "int64", [0, -1, -2]),
        (i**2, "int64", [1, 4, 9]),
        (b + 1, "int64", [2, 1, 2]),
        (b * 0.5, "float32", [0.5, 0, 0.5]),
        (i > 1.5, "bool", [False, True, True]),
        (i == 2, "bool", [False, True, False]),
        (b == True, "bool", [True, False, True]),  # noqa: E712
        (f.astype("bfloat16") * 2, "bfloat16", [1, 3, 5]),
        (f.astype("float16") + np.ones(3), "float16", [1.5, 2.5, 3.5]),
        (2 - f, "float32", [1.5, 0.5, -0.5]),
        (i - 1.0, "float32", [0, 1, 2]),
    ]:
        assert (t.dtype, t.tolist()) == (dtype, value)
    with pytest.raises(TypeError, match="one dtype"):
        f + f.astype("float64")
    assert (Tensor([2**53 + 1, 5]) + (2**60 + 1)).tolist() == [2**53 + 2**60 + 2, 2**60 + 6]
    assert (Tensor([2**53 + 1, 5]) == 2**53 + 1).tolist() == [True, False]


def test_what_is_not_a_number():
    t = Tensor([1.0, 2.0])
    assert (t == None) is False and (t != None) is True  # noqa: E711
    assert (t == "a") is False
    for bad in (None, "a", object(), {}):
        with pytest.raises(TypeError, match="unsupported operand"):
            t + bad
        with pytest.raises(TypeError, match="not supported between"):
            t < bad
    with pytest.raises(ValueError, match=r"do not broadcast"):
        t + Tensor([1.0, 2.0, 3.0])
    with pytest.raises(OverflowError):
        t + 2**70


def test_gradients_of_operators():
    a = np.array([1.0, 2.0, 4.0])
    x = Tensor(a, requires_grad=True)
    y = (
        2 * x
        + x * 3
        - 1
        + (5 - x)
        + x / 2
        + 1 / x
        + x**3
        + 2.0**x
        + np.ones(3) * x
        - x / np.full(3, 4.0)
        + x**2
        + x**0.5
        + x**-0.5
    )
    y.sum().backward()
    want = (
        2
        + 3
        - 1
        + 0.5
        - 1 / a**2
        + 3 * a**2
        + 2.0**a * np.log(2)
        + 1
        - 0.25
        + 2 * a
        + 0.5 * a**-0.5
        - 0.5 * a**-1.5
    )
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-12)


# ---- methods ----


def test_shape_methods():
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    t = Tensor(a)
    for got, want in [
        (t.reshape(6, 4), a.reshape(6, 4)), (t.reshape((4, -1)), a.reshape(4, -1)),
        (t.reshape([-1]), a.reshape(-1)), (t.reshape(2, 1, 3, 4), a[:, None]), (t.T, a.T),
        (t.transpose(), a.T),
        (t.transpose(0, 2, 1), a.transpose(0, 2, 1)), (t.permute((2, 0, 1)), a.transpose(2, 0, 1)),
        (t.transpose(-1, 0, 1), a.transpose(2, 0, 1)), (t.swapaxes(0, -1), a.swapaxes(0, -1)),
        (t.flatten(), a.reshape(-1)), (t.flatten(1), a.reshape(2, 12)), (t.flatten(0, 1), a.reshape(6, 4)),
        (t[:1].squeeze(), a[0]), (t[:1].squeeze(0), a[0]), (t.unsqueeze(-1), a[..., None]),
        (t.unsqueeze(0), a[None]), (t[:1].broadcast_to(5, 3, 4), np.broadcast_to(a[:1], (5, 3, 4))),
        (Tensor(1.0).flatten(), np.ones(1)),
    ]:  # fmt: skip
        equal(got, want)
    equal(t.split([1, 2], axis=1)[1], a[:, 1:])
    t.reshape(-1).numpy()[0] = 50
    assert t[0, 0, 0].item() == 50
    for call, message in [
        (lambda: t.reshape(5, -1), r"reshape: float32\[2, 3, 4\] does not divide"),
        (lambda: t.reshape(-1, -1), "only one size can be -1"),
        (lambda: t.reshape(7), r"cannot become \[7\]"),
        (lambda: t.reshape(-2, 12), "must not be negative, got -2"),
        (lambda: t[:0].reshape(-1, 0), "-1 has no meaning"), (lambda: t.squeeze(0), "axis 0 of float32"),
        (lambda: t.transpose(0, 1), "not an order of the axes"),
        (lambda: t.reshape(2**40, 2**40), "too large"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()
    for call in (lambda: t.swapaxes(0, 3), lambda: t.flatten(3), lambda: t.unsqueeze(5)):
        with pytest.raises(IndexError, match="out of range"):
            call()


def test_reductions_and_functions():
    a = np.random.default_rng(0).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
    t = Tensor(a)
    for name in ("sum", "mean", "max", "min"):
        for axis in (None, 0, -1) + (((0, 2),) if name in ("sum", "mean") else ()):
            for keepdims in (False, True):
                np.testing.assert_allclose(
                    getattr(t, name)(axis=axis, keepdims=keepdims).numpy(),
                    getattr(a, name)(axis=axis, keepdims=keepdims),
                    rtol=1e-5,
                )
    for axis in (None, 0, -1):
        equal(t.argmax(axis=axis), a.argmax(axis=axis))
    np.testing.assert_allclose(t.cumsum(1).numpy(), a.cumsum(1), rtol=1e-5)
    for name in ("exp", "log", "sqrt", "tanh", "abs"):
        np.testing.assert_allclose(getattr(t, name)().numpy(), getattr(np, name)(a), rtol=1e-5)
    np.testing.assert_allclose(t.softmax().numpy().sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(t.sigmoid().numpy(), 1 / (1 + np.exp(-a)), rtol=1e-5)
    np.testing.assert_allclose(t.rsqrt().numpy(), a**-0.5, rtol=1e-5)
    for name in ("relu", "silu", "gelu", "log_softmax"):
        assert getattr(t, name)().shape == t.shape


def test_numbers_out():
    assert Tensor(2.5).item() == 2.5 and isinstance(Tensor(2).item(), int) and Tensor([[True]]).item() is True
    assert (
        Tensor(2**62 + 1).item() == 2**62 + 1
        and Tensor(np.int8(-3)).item() == -3
        and Tensor(np.uint8(200)).item() == 200
    )
    assert Tensor(1.5, dtype="bfloat16").item() == 1.5 and Tensor(-1.5, dtype="float16").item() == -1.5
    assert float(Tensor([1.5])) == 1.5 and int(Tensor(3.7)) == 3 and [10, 20, 30][Tensor(1)] == 20
    assert (
        bool(Tensor(1.0))
        and not Tensor([0])
        and f"{Tensor(1.23456):.2f}" == "1.23"
        and f"{Tensor(3):04d}" == "0003"
    )
    for call, error in [
        (lambda: Tensor([1.0, 2.0]).item(), ValueError),
        (lambda: bool(Tensor([1, 2])), ValueError),
        (lambda: [1][Tensor(0.0)], TypeError),
        (lambda: len(Tensor(1.0)), TypeError),
    ]:
        with pytest.raises(error):
            call()


def test_identity():
    t, u = Tensor([1.0]), Tensor([1.0])
    assert len({t, u, t}) == 2 and {t: 1}[t] == 1
    assert weakref.ref(t)() is t


def test_detach_and_requires_grad():
    x = Tensor([1.0, 2.0]).requires_grad_()
    assert x.requires_grad and x.is_leaf
    y = x * 2
    assert y.requires_grad and not y.is_leaf and not y.detach().requires_grad
    with pytest.raises(RuntimeError, match="leaf"):
        y.requires_grad = False
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]
    x.zero_grad()
    assert x.grad is None
    x.grad = np.float32([1, 1])
    assert x.grad.tolist() == [1, 1]
    with pytest.raises(ValueError, match="shape"):
        x.grad = Tensor([1.0])
    x.grad = None
    assert x.grad is None and not x.requires_grad_(False).requires_grad


def test_repr():
    assert repr(Tensor([1.0, 2.5])) == "Tensor([1. , 2.5], float32[2])"
    assert repr(Tensor(3)) == "Tensor(3, int64[])"
    assert (
        repr(
            Tensor(
                [[True]],
            )
        )
        == "Tensor([[ True]], bool[1, 1])"
    )
    assert repr(Tensor([1.0], requires_grad=True)) == "Tensor([1.], float32[1], requires_grad=True)"
    assert repr(plm.zeros(0, 3)) == "Tensor([], float32[0, 3])"
    text = repr(plm.zeros(1000, 1000))
    assert "..." in text and len(text) < 600
    assert "bfloat16[1]" in repr(Tensor([1.0], dtype="bfloat16"))
    assert str(Tensor([1.0])) == repr(Tensor([1.0])) == f"{Tensor([1.0])}"


class Named(Tensor):
    def __init__(self, data, name):
        super().__init__(data, requires_grad=True)
        self.name = name


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_pickle_and_deepcopy(dtype):
    t = Tensor(np.arange(6).reshape(2, 3) % 2, dtype=dtype)
    for other in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t), copy.copy(t)):
        assert (other.dtype, other.shape, other.requires_grad) == (t.dtype, t.shape, False)
        equal(other, t.numpy())
        assert not np.shares_memory(other.numpy(), t.numpy())


def test_pickle_keeps_class_flags_and_attributes():
    x = Named([1.0, 2.0], "weight")
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert (
            type(other) is Named
            and other.name == "weight"
            and other.requires_grad
            and other.tolist() == [1, 2]
        )
    y = x * 2
    assert type(y) is Tensor and not pickle.loads(pickle.dumps(y)).requires_grad
    both = copy.deepcopy([x, x])
    assert both[0] is both[1] and both[0] is not x


@pytest.mark.filterwarnings("ignore:nanobind")
def test_an_object_that_was_not_initialised_is_an_error():
    class Lazy(Tensor):
        def __init__(self):
            pass

    for t in (Tensor.__new__(Tensor), Lazy.__new__(Lazy)):
        for call in (lambda t=t: t + 1, lambda t=t: t.shape, lambda t=t: repr(t), lambda t=t: ops.add(t, t)):
            with pytest.raises(TypeError):
                call()


def test_setting_items_says_what_to_do():
    with pytest.raises(TypeError, match="not changed in place"):
        Tensor([1.0])[0] = 2


def test_numpy_functions_take_tensors():
    t = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert np.asarray(t).tolist() == t.tolist() and np.asarray(t, dtype=np.int32).dtype == np.int32
    assert np.shares_memory(np.asarray(t), t.numpy()) and not np.shares_memory(np.array(t), t.numpy())
    assert np.concatenate([t, t]).shape == (4, 2) and np.linalg.norm(np.asarray(t)) > 5
    np.testing.assert_allclose(t, [[1, 2], [3, 4]])
    assert ops.add([1.0, 2.0], np.float32([1, 1])).tolist() == [2, 3]
