import numpy as np
import pytest
from optest import OpSpec
from plmcore import Tensor, ops

spec = OpSpec(
    op=ops.transpose,
    ref=lambda x, order: x.transpose(order),
    cases=[
        dict(x=(2, 3, 4, 8), order=[0, 2, 1, 3]),
        dict(x=(5, 7, 4, 8), order=[0, 2, 1, 3]),
        dict(x=(37, 131), order=[1, 0]),
        dict(x=(5, 769, 3), order=[0, 2, 1]),
        dict(x=(70, 3, 65), order=[2, 1, 0]),
        dict(x=(2, 3, 4, 5), order=[-1, 0, 2, 1]),
        dict(x=(2, 3, 4, 5), order=[0, 1, 2, 3]),
        dict(x=(1, 6, 1, 7), order=[3, 0, 2, 1]),
        dict(x=(), order=[]),
        dict(x=(9,), order=[0]),
        dict(x=(0, 4), order=[1, 0]),
        dict(x=np.arange(2 * 33 * 50).reshape(2, 33, 50), order=[0, 2, 1]),
        dict(x=np.arange(33 * 50).reshape(33, 50) % 3 == 0, order=[1, 0]),
    ],
    dims={"x": "B T H 8"},
    errors=[
        (dict(x=(2, 3), order=[0, 0]), r"transpose: \[0, 0\] is not an order of the axes of float32\[2, 3\]"),
        (dict(x=(2, 3), order=[1]), r"transpose: \[1\] is not an order"),
        (dict(x=(2, 3), order=[0, 2]), r"transpose: axis 2 is out of range for 2 axes", IndexError),
    ],
    bench=[
        dict(x=(8, 512, 12, 64), order=[0, 2, 1, 3]),
        dict(x=(1024, 3072), order=[1, 0]),
        dict(x=(96, 128, 64), order=[0, 2, 1]),
    ],
    torch=lambda t, x, order: x.permute(order).contiguous(),
)
test_all = spec.tests()


@pytest.mark.parametrize("dtype", ["int8", "float16", "int32", "float64"])
def test_any_order_and_element_size(dtype):
    rng = np.random.default_rng(1)
    for _ in range(40):
        shape = tuple(rng.integers(1, 20, rng.integers(1, 6)))
        order = tuple(int(a) for a in rng.permutation(len(shape)))
        x = rng.integers(0, 100, shape).astype(dtype)
        np.testing.assert_array_equal(ops.transpose(Tensor(x), order).numpy(), x.transpose(order))


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1600, 1501), (3, 1088, 707), (64, 4099, 9)], ids=str)
def test_results_larger_than_the_cache(dtype, shape):
    """Such results are written past it, whole lines at a time; a row of 1,600 elements is one of lines, in
    any dtype.
    """
    x = (np.arange(np.prod(shape)).reshape(shape) % 113).astype(dtype)
    order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
    np.testing.assert_array_equal(ops.transpose(Tensor(x), order).numpy(), x.transpose(order))
