import numpy as np
from naive import erfc
from optest import OpSpec
from plmcore import ops


def gelu(x, tanh_form):
    with np.errstate(all="ignore"):
        if tanh_form:
            return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        return 0.5 * x * erfc(-x / np.sqrt(x.dtype.type(2)))


spec = OpSpec(
    op=ops.gelu,
    ref=gelu,
    cases=[
        dict(x=shape, tanh_form=form)
        for form in (False, True)
        for shape in ((2, 3, 8), (5, 1, 8), (3, 769), (), (70001,), (0, 8))
    ],
    dims={"x": "B T 8"},
    errors=[(dict(x=np.arange(3), tanh_form=False), r"gelu: needs a float dtype, got int64\[3\]", TypeError)],
    bench=[dict(x=(4096, 3072), tanh_form=False), dict(x=(4096, 3072), tanh_form=True)],
    torch=lambda t, x, tanh_form: t.nn.functional.gelu(x, approximate="tanh" if tanh_form else "none"),
)
limits = OpSpec(
    op=ops.gelu,
    ref=gelu,
    cases=[
        dict(x=np.array([0, -0.0, 6, -6, 30, -30, 1e4, -1e4, np.inf, np.nan]), tanh_form=form)
        for form in (False, True)
    ],
    grad=(),
)


def test_tail_keeps_its_digits():
    x = np.linspace(-9, -1, 997).astype(np.float32)
    y, r = ops.gelu(x).numpy(), gelu(x.astype(float), False)
    assert np.abs(y / r - 1).max() < 1e-5


test_all = spec.tests()
test_limits = limits.tests()
