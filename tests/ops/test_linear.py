import math

import numpy as np
from naive import erfc
from optest import OpSpec
from plmcore import ops

ACTIVATIONS = {
    "none": lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "gelu": lambda z: z * 0.5 * erfc(-z / np.sqrt(z.dtype.type(2))),
    "gelu_tanh": lambda z: z * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))),
    "tanh": np.tanh,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "silu": lambda z: z / (1 + np.exp(-z)),
}


def ref(x, weight, bias=None, activation="none"):
    z = x @ weight.T
    return ACTIVATIONS[activation](z if bias is None else z + bias) if z.size else z


def torch_linear(t, x, weight, bias=None, activation="none"):
    z = t.nn.functional.linear(x, weight, bias)
    return z if activation == "none" else t.nn.functional.gelu(z)


spec = OpSpec(
    op=ops.linear,
    ref=ref,
    cases=[dict(x=(2, 3, 5), weight=(4, 5), bias=(4,), activation=a) for a in ACTIVATIONS]
    + [
        dict(x=(4, 7, 5), weight=(4, 5), bias=(4,), activation="none"),
        dict(x=(7,), weight=(3, 7)),
        dict(x=(1, 37), weight=(101, 37), bias=(101,)),
        dict(x=(8, 65), weight=(33, 65)),
        dict(x=(3, 13, 17), weight=(19, 17), bias=(19,), activation="gelu"),
        dict(x=(51, 389), weight=(101, 389), bias=(101,), activation="gelu"),  # few rows: the turned product
        dict(x=(385, 389), weight=(101, 389), bias=(101,), activation="gelu_tanh"),
        dict(x=(0, 5), weight=(4, 5), bias=(4,)),
        dict(x=(2, 0), weight=(4, 0), bias=(4,)),
    ],
    dims={"x": "B T 5"},
    errors=[
        (dict(x=(2, 6), weight=(4, 5)), r"the last axis of x must be 5 \(weight is \[4, 5\]\), got \[2, 6\]"),
        (dict(x=(2, 5), weight=(4, 5), bias=(5,)), r"bias must be \[4\]"),
        (dict(x=(2, 5), weight=(5,)), r"weight must be \[N, K\]"),
        (dict(x=(2, 5), weight=(4, 5), activation="swish"), r"must be one of none, relu.*got 'swish'"),
    ],
    by_size=False,  # a small gelu comes from a sum near 0 or from one far below it: its size says nothing
    bench=dict(x=(1024, 768), weight=(3072, 768), bias=(3072,), activation="gelu"),
    torch=torch_linear,
)
test_all = spec.tests()
