import ml_dtypes
import numpy as np
from optest import OpSpec
from plmcore import ops


def cast(x, dtype):
    return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


spec = OpSpec(
    op=ops.cast,
    ref=cast,
    cases=[
        dict(x=(2, 3), dtype="float64"),
        dict(x=(5, 3), dtype="float64"),
        dict(x=(37,), dtype="float64"),
        dict(x=(40001,), dtype="float64"),
        dict(x=(0, 3), dtype="float64"),
    ],
    dims={"x": "B 3"},
    errors=[(dict(x=(2,), dtype="complex64"), r"dtype must be one of .* got 'complex64'", TypeError)],
    bench=dict(x=(4096, 768), dtype="bfloat16"),
    torch=lambda t, x, dtype: x.to(getattr(t, dtype)),
)

# Rounding: a difference quotient would see the steps, so there is no gradient check here.
rounding = OpSpec(
    op=ops.cast,
    ref=cast,
    cases=[
        dict(
            x=np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 65504.0, 1e6, 1e-7, np.nan, np.inf, -np.inf, 3.4e38]),
            dtype="bfloat16",
        ),
        dict(
            x=np.array([1.0, 1 + 2**-11, 1 + 3 * 2**-11, 65504.0, 1e-7, np.nan, np.inf, -np.inf]),
            dtype="float16",
        ),
        dict(x=(3, 41), dtype="bfloat16"),
        dict(x=(3, 41), dtype="float16"),
        dict(x=(3, 41), dtype="float32"),
        dict(x=np.array([1.9, -1.9, 0.0, 100.4]), dtype="int8"),
        dict(x=np.array([3.0, 0.0, -0.0, np.nan, np.inf]), dtype="bool"),
        dict(x=np.array([-5, 300, 1 << 40]), dtype="float32"),
        dict(x=np.array([True, False]), dtype="float16"),
        dict(x=np.array([1, 0, -3], np.int8), dtype="int64"),
    ],
    grad=(),
    dtypes=("float32", "float64"),
)
test_all = spec.tests()
test_rounding = rounding.tests()
