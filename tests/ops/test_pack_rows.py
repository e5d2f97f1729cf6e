import numpy as np
from optest import OpSpec
from plmcore import Tensor, _core, ops


def mask(shape, share=0.6):
    return np.random.default_rng(sum(shape)).random(shape) < share


spec = OpSpec(
    op=ops.pack_rows,
    ref=lambda x, mask: (x[mask], np.flatnonzero(mask)),
    cases=[
        dict(x=(2, 3, 8), mask=mask((2, 3))),
        dict(x=(5, 7, 8), mask=mask((5, 7))),
        dict(x=(3, 37, 769), mask=mask((3, 37))),
        dict(x=(4, 9, 2, 3), mask=mask((4, 9))),
        dict(x=(4, 9), mask=mask((4, 9))),
        dict(x=(2, 3, 8), mask=np.ones((2, 3), bool)),
        dict(x=(2, 3, 8), mask=np.zeros((2, 3), bool)),
        dict(x=(0, 3, 8), mask=np.zeros((0, 3), bool)),
        dict(x=np.arange(12).reshape(3, 4), mask=mask((3, 4))),
        dict(x=(300, 200, 5), mask=mask((300, 200))),
    ],
    dims={"x": "B T 8", "mask": "B T"},
    errors=[
        (
            dict(x=(2, 3, 8), mask=np.ones((2, 4), bool)),
            r"pack_rows: x must be \[B, T, ...\] and mask \[B, T\], got float32\[2, 3, 8\] and bool\[2, 4\]",
        ),
        (
            dict(x=(2, 3, 8), mask=np.ones((2, 3), int)),
            r"pack_rows: mask must be bool, got int64\[2, 3\]",
            TypeError,
        ),
        (dict(x=(2,), mask=np.ones((2,), bool)), r"pack_rows: x must be \[B, T, ...\]"),
    ],
    bench=dict(x=(32, 128, 768), mask=mask((32, 128))),
    torch=lambda t, x, mask: x[mask],
)
test_all = spec.tests()


def test_a_program_packs_works_and_unpacks_at_any_size():
    tracer = _core.Tracer()
    x = tracer.input("x", [_core.Dim("B"), _core.Dim("T"), 4], "float32")
    keep = tracer.input("mask", [_core.Dim("B"), _core.Dim("T")], "bool")
    rows, index = ops.pack_rows(x, keep)
    program = tracer.finish([], [ops.unpack_rows(ops.mul(rows, rows), index, x.shape[0], x.shape[1]), index])
    for shape in ((2, 3), (5, 1), (7, 40)):
        a, m = np.random.default_rng(1).standard_normal((*shape, 4)).astype(np.float32), mask(shape)
        y, index = program.run([Tensor(a), Tensor(m)])
        assert np.array_equal(y.numpy(), np.where(m[..., None], a * a, 0))
        assert np.array_equal(index.numpy(), np.flatnonzero(m))
