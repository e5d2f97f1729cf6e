import numpy as np
from optest import OpSpec
from plmcore import Tensor, ops


def packed_linear(x, weight, bias=None, activation="none"):
    packed = ops.pack_weight(weight)
    return ops.linear_packed(x, packed, bias, N=weight.shape[0], activation=activation)


def ref(x, weight, bias=None, activation="none"):
    z = x @ weight.T + (0 if bias is None else bias)
    return np.maximum(z, 0) if activation == "relu" else z


spec = OpSpec(
    op=packed_linear,
    ref=ref,
    cases=[
        dict(x=(2, 3, 5), weight=(4, 5), bias=(4,), activation="relu"),
        dict(x=(4, 7, 5), weight=(4, 5), bias=(4,), activation="relu"),
        dict(x=(1, 37), weight=(101, 37), bias=(101,)),
        dict(x=(97, 65), weight=(63, 65)),
        dict(x=(5, 37), weight=(192, 37)),  # without padding in the packed weight
        dict(x=(385, 389), weight=(401, 389), bias=(401,), activation="relu"),
        dict(x=(0, 5), weight=(4, 5)),
    ],
    dims={"x": "B T 5"},
    covers=["pack_weight", "linear_packed"],
    grad=(),
    dtypes=("float32",),
    errors=[(dict(x=(2, 6), weight=(4, 5)), r"the last axis of x must be 5, got \[2, 6\]")],
    bench=dict(x=(128, 768), weight=(768, 768), bias=(768,)),
    torch=lambda t, x, weight, bias: t.nn.functional.linear(x, weight, bias),
)
test_all = spec.tests()


def test_equals_linear():
    rng = np.random.default_rng(3)
    x, w, b = (Tensor(rng.standard_normal(s, dtype=np.float32)) for s in ((130, 777), (331, 777), (331,)))
    assert np.allclose(packed_linear(x, w, b).numpy(), ops.linear(x, w, b).numpy(), rtol=0, atol=1e-4)
