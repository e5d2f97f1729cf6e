import numpy as np
from optest import OpSpec
from plmcore import ops


def argmax(x, axis, keepdims):
    return np.argmax(x, axis=axis, keepdims=keepdims)


def rows(*changes):
    x = np.random.default_rng(1).standard_normal((len(changes), 75))
    for row, (place, value) in zip(x, changes):
        row[place] = value
    return x


spec = OpSpec(
    op=ops.argmax,
    ref=argmax,
    cases=[
        dict(x=(2, 3, 8), axis=-1, keepdims=False),
        dict(x=(5, 1, 8), axis=-1, keepdims=False),
        dict(x=(5, 769), axis=1, keepdims=True),
        dict(x=(37, 3, 5), axis=0, keepdims=False),
        dict(x=(3, 64), axis=-1, keepdims=False),
        dict(x=(0, 5), axis=1, keepdims=False),
        dict(x=np.array([[3, 9, 9], [-1, -5, -5]]), axis=1, keepdims=False),
        dict(x=np.array([[False, True], [False, False]]), axis=1, keepdims=False),
        dict(
            x=rows(
                (3, np.nan),
                (70, np.nan),
                (5, np.inf),
                (74, -np.inf),
                (slice(None), -np.inf),
                (slice(None), 0),
                (74, 9),
            ),
            axis=1,
            keepdims=False,
        ),
        dict(x=rows((3, np.nan), (70, np.nan), (5, np.inf), (74, -np.inf)), axis=0, keepdims=False),
    ],
    dims={"x": "B T 8"},
    errors=[
        (dict(x=(2, 3), axis=-3, keepdims=False), r"argmax: axis -3 is out of range for 2 axes", IndexError),
        (dict(x=(2, 0), axis=1, keepdims=False), r"argmax: axis 1 of float32\[2, 0\] has no elements"),
    ],
    bench=dict(x=(512, 30522), axis=-1, keepdims=False),
    torch=lambda t, x, axis, keepdims: x.argmax(axis, keepdims),
)
test_all = spec.tests()
