import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.min,
    ref=lambda x, axis, keepdims: np.min(x, axis=axis, keepdims=keepdims),
    cases=[
        dict(x=(2, 3, 8), axis=-1, keepdims=False),
        dict(x=(5, 1, 8), axis=-1, keepdims=False),
        dict(x=(5, 769), axis=1, keepdims=True),
        dict(x=(37, 3, 5), axis=0, keepdims=False),
        dict(x=(4, 37, 5), axis=1, keepdims=True),
        dict(x=(3, 64), axis=-1, keepdims=False),
        dict(x=(7,), axis=0, keepdims=False),
        dict(x=(0, 5), axis=1, keepdims=False),
        dict(x=np.array([[3, 9, 9], [-1, -5, -5]]), axis=1, keepdims=False),
        dict(x=np.array([[3, 9, 9], [-1, -5, -5]], np.int8), axis=0, keepdims=False),
    ],
    dims={"x": "B T 8"},
    errors=[
        (dict(x=(2, 3), axis=2, keepdims=False), r"min: axis 2 is out of range for 2 axes", IndexError),
        (dict(x=(2, 0), axis=1, keepdims=False), r"min: axis 1 of float32\[2, 0\] has no elements"),
    ],
    bench=dict(x=(4096, 768), axis=-1, keepdims=False),
    torch=lambda t, x, axis, keepdims: x.min(axis, keepdims)[0],
)


def rows(*changes):
    x = np.random.default_rng(1).standard_normal((len(changes), 75))
    for row, (place, value) in zip(x, changes):
        row[place] = value
    return x


limits = OpSpec(
    op=ops.min,
    ref=lambda x, axis, keepdims: np.min(x, axis=axis, keepdims=keepdims),
    cases=[
        dict(
            x=rows(
                (3, np.nan),
                (70, np.nan),
                (5, np.inf),
                (74, -np.inf),
                (slice(None), -np.inf),
                (slice(None), 0),
            ),
            axis=1,
            keepdims=False,
        ),
        dict(x=rows((3, np.nan), (70, np.nan), (5, np.inf), (74, -np.inf)), axis=0, keepdims=False),
    ],
    grad=(),
)


def test_gradient_goes_to_the_first_of_equals():
    from plmcore import Tensor

    x = Tensor(np.array([[1.0, 2, 2], [3, 3, 3]]), requires_grad=True)
    ops.min(x, -1).backward(Tensor(np.array([1.0, 1])))
    assert x.grad.numpy().tolist() == [[1, 0, 0], [1, 0, 0]]


test_all = spec.tests()
test_limits = limits.tests()
