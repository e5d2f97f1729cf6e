"""One layer of a GRU against the cell written out, step by step."""

import numpy as np
from optest import OpSpec
from plmcore import ops
from recurrent_reference import gru

lengths = lambda *n: np.array(n, np.int64)  # noqa: E731


def sizes(B, T, H, **options):
    return dict(x=(B, T, 3 * H), weight=(3 * H, H), bias=(H,), h=(B, H)) | options


spec = OpSpec(
    op=ops.gru,
    ref=gru,
    cases=[
        sizes(2, 3, 5),
        sizes(4, 7, 5),
        sizes(3, 4, 37),
        sizes(14, 3, 70),  # two blocks of units, rows that cross a block of the product
        sizes(3, 5, 9, bias=None, reverse=True),
        sizes(4, 6, 5, lengths=lengths(3, 6, 0, 5)),
        sizes(4, 6, 5, lengths=np.array([3, 4, 0, 5], np.int32), reverse=True),
        sizes(1, 1, 5),
        sizes(2, 0, 5),
        sizes(0, 3, 5),
    ],
    sample=dict(weight=lambda rng, shape: rng.standard_normal(shape) / np.sqrt(shape[1])),
    dims={"x": "B T 15", "h": "B 5"},
    by_size=False,  # each step's error is that of all steps before it, whatever the size of a value
    errors=[
        (dict(x=(2, 15), weight=(15, 5), bias=None, h=(2, 5)), r"x must be \[B, T, 3 H\], got \[2, 15\]"),
        (sizes(2, 3, 5, weight=(15, 4)), r"weight must be \[3 H, H\], got \[15, 4\]"),
        (sizes(2, 3, 5, x=(2, 3, 18)), r"x must be \[2, 3, 15\], got \[2, 3, 18\]"),
        (sizes(2, 3, 5, bias=(15,)), r"bias must be \[5\], got \[15\]"),
        (sizes(2, 3, 5, h=(3, 5)), r"h must be \[2, 5\], got \[3, 5\]"),
        (sizes(2, 3, 5, lengths=lengths(3, 4)), r"gru: lengths\[1\] is 4, outside 0\.\.3 steps"),
    ],
    bench=sizes(32, 64, 1024),
)
test_all = spec.tests()
