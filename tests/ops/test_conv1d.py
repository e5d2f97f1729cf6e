import numpy as np
from optest import OpSpec
from plmcore import ops


def ref(x, weight, bias=None, padding=0):
    B, T, C = x.shape
    O, _, W = weight.shape
    around = np.pad(x, ((0, 0), (padding, padding), (0, 0)))
    n = T + 2 * padding - W + 1
    windows = np.concatenate([around[:, w : w + n] for w in range(W)], 2)  # [B, n, W C]
    y = windows @ weight.transpose(2, 1, 0).reshape(W * C, O)
    return y if bias is None else y + bias


def torch_conv1d(t, x, weight, bias=None, padding=0):
    y = t.nn.functional.conv1d(x.transpose(1, 2), weight, bias, padding=padding)
    return y.transpose(1, 2)


def sizes(B, T, C, O, W, **options):
    return dict(x=(B, T, C), weight=(O, C, W), bias=(O,)) | options


spec = OpSpec(
    op=ops.conv1d,
    ref=ref,
    cases=[
        sizes(2, 5, 4, 3, 3),
        sizes(3, 9, 4, 3, 3),
        sizes(2, 6, 4, 3, 1),
        sizes(2, 7, 5, 37, 3, padding=1),
        sizes(3, 4, 3, 5, 4, padding=3),
        sizes(1, 200, 3, 5, 2),  # two tiles of one text
        sizes(40, 6, 17, 33, 5, padding=2),
        dict(x=(2, 5, 4), weight=(3, 4, 2)),
        sizes(2, 2, 4, 3, 3),  # no position
        sizes(0, 5, 4, 3, 3),
    ],
    dims={"x": "B T 4"},
    errors=[
        (sizes(2, 1, 4, 3, 3), r"a width of 3 needs at least 2 positions of x, got \[2, 1, 4\]"),
        (sizes(2, 5, 4, 3, 3) | dict(x=(2, 5, 6)), r"x must be \[B, T, 4\] \(weight is \[3, 4, 3\]\)"),
        (dict(x=(2, 5, 4), weight=(3, 4)), r"weight must be \[O, C, W\], got \[3, 4\]"),
        (sizes(2, 5, 4, 3, 3, bias=(4,)), r"bias must be \[3\], got \[4\]"),
        (sizes(2, 5, 4, 3, 3, padding=3), r"padding must be in \[0, 3\) for a width of 3, got 3"),
        (sizes(2, 5, 4, 3, 3) | dict(x=np.ones((2, 5, 4), int)), r"needs a float dtype", TypeError),
    ],
    bench=sizes(50, 60, 300, 100, 5),
    torch=torch_conv1d,
)
test_all = spec.tests()
