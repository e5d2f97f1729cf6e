"""One layer of an LSTM against the cell written out, step by step."""

import numpy as np
from optest import OpSpec
from plmcore import ops
from recurrent_reference import lstm

lengths = lambda *n: np.array(n, np.int64)  # noqa: E731


def sizes(B, T, H, P=0, **options):
    projected = dict(projection=(P, H)) if P else {}
    return dict(x=(B, T, 4 * H), weight=(4 * H, P or H), h=(B, P or H), c=(B, H), **projected, **options)


def torch_lstm(t, x, weight, h, c):
    """The recurrent part, with an input product of the width of x."""
    H = c.shape[1]
    eye, zero = t.eye(4 * H), t.zeros(4 * H)
    return t._VF.lstm(x, (h[None], c[None]), [eye, weight, zero, zero], True, 1, 0.0, False, False, True)


spec = OpSpec(
    op=ops.lstm,
    ref=lstm,
    cases=[
        sizes(2, 3, 5),
        sizes(4, 7, 5),
        sizes(3, 4, 37),
        sizes(14, 3, 70),  # two blocks of units, rows that cross a block of the product
        sizes(3, 5, 9, reverse=True),
        sizes(4, 6, 5, lengths=lengths(3, 6, 0, 5)),
        sizes(4, 6, 5, lengths=np.array([3, 4, 0, 5], np.int32), reverse=True),
        sizes(2, 5, 37, 11),
        sizes(3, 4, 5, 66, lengths=lengths(1, 4, 2)),
        sizes(3, 5, 6, cell_clip=0.3),
        sizes(3, 5, 7, 4, cell_clip=0.5, projection_clip=0.4, lengths=lengths(5, 2, 4), reverse=True),
        sizes(1, 1, 5),
        sizes(1, 1, 1),
        sizes(2, 2, 1),
        sizes(2, 0, 5),
        sizes(0, 3, 5),
    ],
    sample=dict(weight=lambda rng, shape: rng.standard_normal(shape) / np.sqrt(shape[1])),
    dims={"x": "B T 20", "h": "B 5", "c": "B 5"},
    by_size=False,  # each step's error is that of all steps before it, whatever the size of a value
    errors=[
        (dict(x=(2, 20), weight=(20, 5), h=(2, 5), c=(2, 5)), r"x must be \[B, T, 4 H\], got \[2, 20\]"),
        (dict(x=(2, 3, 20), weight=(18, 5), h=(2, 5), c=(2, 5)), r"weight must be \[4 H, P\], got \[18, 5\]"),
        (
            dict(x=(2, 3, 20), weight=(20, 4), h=(2, 4), c=(2, 5)),
            r"without a projection weight must be \[4 H, H\], got \[20, 4\]",
        ),
        (dict(x=(2, 3, 24), weight=(20, 5), h=(2, 5), c=(2, 5)), r"x must be \[2, 3, 20\], got \[2, 3, 24\]"),
        (dict(x=(2, 3, 20), weight=(20, 5), h=(3, 5), c=(3, 5)), r"h must be \[2, 5\], got \[3, 5\]"),
        (dict(x=(2, 3, 20), weight=(20, 5), h=(2, 5), c=(3, 5)), r"c must be \[2, 5\], got \[3, 5\]"),
        (sizes(2, 3, 5) | dict(projection=(5, 4)), r"projection must be \[5, 5\], got \[5, 4\]"),
        (sizes(2, 3, 5, lengths=lengths(3, 4)), r"lstm: lengths\[1\] is 4, outside 0\.\.3 steps"),
        (sizes(2, 3, 5, lengths=lengths(-1, 3)), r"lstm: lengths\[0\] is -1, outside 0\.\.3 steps"),
        (sizes(2, 3, 5, lengths=lengths(1, 2, 3)), r"lengths must be \[2\], one per sequence, got \[3\]"),
        (sizes(2, 3, 5, lengths=np.ones(2)), r"lengths must be int64 or int32", TypeError),
        (sizes(2, 3, 5, cell_clip=-1.0), r"cell_clip must not be negative, got -1"),
        (sizes(2, 3, 5, projection_clip=1.0), r"projection_clip needs a projection"),
    ],
    bench=sizes(32, 64, 1024),
    torch=torch_lstm,
)
test_all = spec.tests()
