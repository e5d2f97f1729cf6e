"""Writes block.plm and block.npz: a layer_norm with a residual in two programs that share weights, and what
they give.

Run once per format; the files are kept so that later versions prove that they still read them:

    python tests/golden/make_block.py
"""

import pathlib

import numpy as np
from plmcore import Tensor, _core, ops
from plmcore.program.export import export

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(1)
gamma = Tensor(rng.standard_normal(24).astype("float32"))
beta = Tensor(rng.standard_normal(24).astype("float32"))
half = Tensor(rng.standard_normal((3, 24)), dtype="bfloat16")


def norm() -> _core.Program:
    trace = _core.Tracer()
    x = trace.input("x", (_core.Dim("B"), _core.Dim("T"), 24), "float32")
    trace.name_constant(gamma, "norm.gamma")
    trace.name_constant(beta, "norm.beta")
    return trace.finish(["y"], [ops.add(x, ops.layer_norm(x, gamma, beta, eps=1e-5))])


def scale() -> _core.Program:
    trace = _core.Tracer()
    x = trace.input("x", (_core.Dim("N"), 24), "float32")
    trace.name_constant(gamma, "norm.gamma")
    trace.name_constant(half, "half")
    return trace.finish(["y", "cast"], [ops.mul(x, gamma), ops.cast(half, "float32")])


x = rng.standard_normal((2, 3, 24)).astype("float32")
rows = rng.standard_normal((5, 24)).astype("float32")
programs = {"norm": norm(), "scale": scale()}
export(programs, here / "block.plm")
(y,) = programs["norm"].run([x])
scaled, cast = programs["scale"].run([rows])
np.savez(here / "block.npz", x=x, y=y.numpy(), rows=rows, scaled=scaled.numpy(), cast=cast.numpy())
