import numpy as np
from optest import OpSpec
from plmcore import ops


def labels(shape, share=0.15, ignored=-100, dtype=np.int64):
    rng = np.random.default_rng(sum(shape))
    return np.where(rng.random(shape) < share, rng.integers(0, 9, shape), ignored).astype(dtype)


def select_labelled(x, labels, ignore_index=-100):
    chosen = labels != ignore_index
    return x[chosen], labels[chosen], np.flatnonzero(chosen)


spec = OpSpec(
    op=ops.select_labelled,
    ref=select_labelled,
    cases=[
        dict(x=(4, 9, 8), labels=labels((4, 9))),
        dict(x=(7, 5, 8), labels=labels((7, 5), 0.5)),
        dict(x=(3, 37, 769), labels=labels((3, 37), dtype=np.int32)),
        dict(x=(2, 3, 8), labels=labels((2, 3), 0)),
        dict(x=(2, 3, 8), labels=labels((2, 3), 1)),
        dict(x=(2, 0, 8), labels=labels((2, 0), 1)),
        dict(x=(4, 9, 8), labels=labels((4, 9), 0.5, 0), ignore_index=0),
        dict(x=(4, 9, 2, 3), labels=labels((4, 9), 0.5)),
    ],
    dims={"x": "B T 8", "labels": "B T"},
    errors=[
        (
            dict(x=(2, 3, 8), labels=labels((2, 4))),
            r"select_labelled: x must be \[B, T, ...\] and labels \[B, T\]",
        ),
        (dict(x=(2, 3, 8), labels=(2, 3)), r"select_labelled: labels must be int64 or int32", TypeError),
    ],
    bench=dict(x=(32, 128, 768), labels=labels((32, 128))),
)
test_all = spec.tests()
