"""One layer of a simple recurrent network against the cell written out, step by step."""

import numpy as np
from optest import OpSpec
from plmcore import ops
from recurrent_reference import rnn

lengths = lambda *n: np.array(n, np.int64)  # noqa: E731


def sizes(B, T, H, **options):
    return dict(x=(B, T, H), weight=(H, H), h=(B, H)) | options


spec = OpSpec(
    op=ops.rnn,
    ref=rnn,
    cases=[
        sizes(2, 3, 5),
        sizes(4, 7, 5),
        sizes(3, 4, 37),
        sizes(14, 3, 70),  # two blocks of units, rows that cross a block of the product
        sizes(3, 5, 9, reverse=True, activation="relu"),
        sizes(4, 6, 5, lengths=lengths(3, 6, 0, 5)),
        sizes(4, 6, 5, lengths=np.array([3, 4, 0, 5], np.int32), reverse=True),
        sizes(1, 1, 5),
        sizes(2, 0, 5),
        sizes(0, 3, 5),
    ],
    sample=dict(weight=lambda rng, shape: rng.standard_normal(shape) / np.sqrt(shape[1])),
    dims={"x": "B T 5", "h": "B 5"},
    by_size=False,  # each step's error is that of all steps before it, whatever the size of a value
    errors=[
        (dict(x=(2, 5), weight=(5, 5), h=(2, 5)), r"x must be \[B, T, H\], got \[2, 5\]"),
        (sizes(2, 3, 5, weight=(5, 4)), r"weight must be \[H, H\], got \[5, 4\]"),
        (sizes(2, 3, 5, x=(2, 3, 6)), r"x must be \[2, 3, 5\], got \[2, 3, 6\]"),
        (sizes(2, 3, 5, h=(3, 5)), r"h must be \[2, 5\], got \[3, 5\]"),
        (sizes(2, 3, 5, activation="gelu"), r"activation must be tanh or relu"),
        (sizes(2, 3, 5, lengths=lengths(3, 4)), r"rnn: lengths\[1\] is 4, outside 0\.\.3 steps"),
    ],
    bench=sizes(32, 64, 1024),
)
test_all = spec.tests()
