import ml_dtypes
import numpy as np
from optest import OpSpec
from plmcore import ops

RNG = np.random.default_rng(6)


def int8(*shape):
    return RNG.integers(-127, 128, shape, dtype=np.int8)


def ids(*shape, dtype=np.int64):
    return RNG.integers(0, 5, shape).astype(dtype)


def quantized(weight, ids, scale=None):
    """A weight of floats as bfloat16."""
    return ops.embedding_quantized(
        weight if weight.dtype == "int8" else ops.cast(weight, "bfloat16"), ids, scale
    )


def reference(weight, ids, scale=None):
    weight = weight if weight.dtype == np.int8 else weight.astype(ml_dtypes.bfloat16)
    rows = weight[ids].astype(np.float64)
    return rows if scale is None else rows * scale[ids][..., None]


spec = OpSpec(
    op=quantized,
    ref=reference,
    cases=[
        dict(weight=int8(5, 4), ids=ids(2, 3), scale=(5,)),
        dict(weight=int8(5, 4), ids=ids(4, 7), scale=(5,)),
        dict(weight=int8(37, 769), ids=ids(20, dtype=np.int32), scale=(37,)),
        dict(weight=(37, 769), ids=ids(200)),
        dict(weight=int8(5, 4), ids=ids(0, 3), scale=(5,)),
        dict(weight=int8(5, 0), ids=ids(3), scale=(5,)),
    ],
    covers=["embedding_quantized"],
    dims={"ids": "B T"},
    grad=(),
    dtypes=("float32",),
    errors=[
        (
            dict(weight=int8(4, 3), ids=np.array([1, 4]), scale=(4,)),
            r"index 4 at position \[1\] is out of range",
            IndexError,
        ),
        (dict(weight=int8(4, 3), ids=np.array([1])), r"an int8 weight needs a scale"),
        (dict(weight=int8(4), ids=np.array([1]), scale=(4,)), r"weight must be \[V, C\], got int8\[4\]"),
        (dict(weight=int8(4, 3), ids=(2,), scale=(4,)), r"must be int64 or int32", TypeError),
    ],
    bench=dict(weight=int8(5000, 768), ids=ids(4096), scale=(5000,)),
)
test_all = spec.tests()
