"""The benchmark entries of the op declarations in tests/ops (`bench=`, `torch=`) as cases: the op beside its
twin in torch, forward and, where it has gradients, forward and backward. Without targets: those are in
cases.py.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from ops.cases import Case


@functools.cache
def cases() -> dict[str, Case]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
    import optest

    optest.all_specs()
    return {c.name: c for b in optest.BENCHMARKS if b.torch for c in both(b, optest)}


def both(benchmark, optest):
    declared = benchmark.case()
    work = "float32" if "float32" in benchmark.spec.dtypes else benchmark.spec.dtypes[0]
    keys = {name: f"in{i}" for i, name in enumerate(declared.arrays)}  # names that mean nothing to the worker
    arrays = {keys[name]: a for name, a in declared.rounded(work).items()}

    def first_output(function, inputs):
        return declared.call(function, {name: inputs[key] for name, key in keys.items()})[0]

    def plm(lib, **inputs):
        return first_output(benchmark.spec.op, inputs)

    def torch(lib, **inputs):
        return first_output(functools.partial(benchmark.torch, lib), inputs)

    random = benchmark.name in ("dropout", "uniform", "normal")
    common = dict(arrays=lambda rng: arrays, plm=plm, torch=torch, target=0.0, compare=not random)
    moved = 4.0 * sum(a.size for a in arrays.values())
    shape = "x".join(map(str, max((a.shape for a in arrays.values()), key=len, default=())))
    name = f"ops.{benchmark.name} {shape}".strip()
    yield Case(name, **common, bytes=moved)
    wanted = tuple(keys[name] for name in benchmark.spec.grad_names(declared))
    if (
        wanted and declared.attrs.get("dtype", work) == work
    ):  # gradients of other dtypes are no work of their own
        yield Case(f"{name} +grad", **common, train=wanted)
