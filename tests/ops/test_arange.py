import numpy as np
from optest import OpSpec
from plmcore import ops

spec = OpSpec(
    op=ops.arange,
    ref=lambda start, stop, dtype="int64": np.arange(start, stop, dtype=dtype),
    cases=[
        dict(start=0, stop=7),
        dict(start=3, stop=40, dtype="int32"),
        dict(start=2, stop=70000, dtype="float32"),
        dict(start=5, stop=9, dtype="float64"),
        dict(start=250, stop=256, dtype="uint8"),
        dict(start=4, stop=4),
    ],
    errors=[
        (dict(start=5, stop=3), r"arange: start must not be above stop, got 5 and 3"),
        (dict(start=0, stop=3, dtype="bool"), r"arange: not defined on bool", TypeError),
    ],
    bench=dict(start=0, stop=1 << 22),
    torch=lambda t, start, stop: t.arange(start, stop),
)
test_all = spec.tests()
