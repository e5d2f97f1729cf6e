import numpy as np
from optest import OpSpec
from plmcore import ops


def beams(B, n, K, dtype=np.int64):
    return np.random.default_rng(B + n).integers(0, K, (B, n)).astype(dtype)


spec = OpSpec(
    op=ops.gather_beams,
    ref=lambda x, beams: x[np.arange(x.shape[0])[:, None], beams],
    cases=[
        dict(x=(2, 3, 4), beams=beams(2, 5, 3)),
        dict(x=(4, 3, 4), beams=beams(4, 2, 3)),
        dict(x=(2, 4, 37, 29), beams=beams(2, 4, 4, np.int32)),
        dict(x=(3, 2), beams=beams(3, 6, 2)),
        dict(x=(1, 2, 40001), beams=beams(1, 3, 2)),
        dict(x=(2, 3, 0), beams=beams(2, 5, 3)),
        dict(x=(2, 3, 4), beams=beams(2, 0, 3)),
        dict(x=np.arange(24).reshape(2, 3, 4), beams=beams(2, 5, 3)),
    ],
    dims={"x": "B 3 4", "beams": "B n"},
    errors=[
        (
            dict(x=(2, 3, 4), beams=np.array([[0, 1], [3, 0]])),
            r"gather_beams: index 3 at position \[1, 0\] is out of range for an axis of size 3",
            IndexError,
        ),
        (
            dict(x=(2, 3, 4), beams=np.array([[0], [-1]])),
            r"gather_beams: index -1 at position \[1, 0\]",
            IndexError,
        ),
        (
            dict(x=(2, 3, 4), beams=np.array([[0]])),
            r"gather_beams: x must be \[B, K, ...\] and beams \[B, n\]",
        ),
        (dict(x=(2, 3, 4), beams=(2, 3)), r"gather_beams: .* must be int64 or int32", TypeError),
    ],
    bench=dict(x=(4, 4, 12, 128, 64), beams=beams(4, 4, 4)),
)
test_all = spec.tests()
