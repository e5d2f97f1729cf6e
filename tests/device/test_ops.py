"""Every op declaration on the device "test": the bits of the CPU, in eager calls, gradients and programs, and
the CPU's errors, which come at the next wait.
"""

import numpy as np
import optest
import plmcore as plm
import pytest
from plmcore import Tensor, _core, ops

SPECS = [pytest.param(s, id=f"{s.name}-{i}") for i, s in enumerate(optest.all_specs())]


def found_on(device, spec, k, dtype, monkeypatch):
    """The outputs of a case and its gradients."""
    monkeypatch.setattr(optest, "DEVICE", device)
    case = spec.case(k)
    arrays = case.rounded(dtype)
    outputs = spec.run(case, optest.tensors(arrays))
    if case.arrays:
        assert {y.device for y in outputs} == {device}
    found = [y.numpy() for y in outputs]
    if spec.grad_names(case):
        found += spec.gradients(case, optest.tensors(arrays), None).values()
    return found


@pytest.mark.parametrize("spec", SPECS)
def test_bits(spec, monkeypatch):
    dtypes = [t for t in ("float32", "bfloat16", "float64") if t in spec.dtypes] or spec.dtypes[:1]
    for k in range(len(spec.cases)):
        for dtype in dtypes[: 1 if k else None]:
            expected = found_on("cpu", spec, k, dtype, monkeypatch)
            found = found_on("test", spec, k, dtype, monkeypatch)
            for i, (a, b) in enumerate(zip(expected, found, strict=True)):
                assert a.dtype == b.dtype and a.tobytes() == b.tobytes(), f"case {k} {dtype}, output {i}"


@pytest.mark.parametrize("spec", [p for p in SPECS if p.values[0].trace])
def test_programs(spec, monkeypatch):
    monkeypatch.setattr(optest, "DEVICE", "test")
    work = "float32" if "float32" in spec.dtypes else spec.dtypes[0]
    spec.check_trace(work, False)
    spec.check_trace(work, True)


def raised_on(device, spec, values, monkeypatch):
    monkeypatch.setattr(optest, "DEVICE", device)
    case = optest.Case(values, spec.sample, f"{spec.name} error")
    kinds = {n: "float32" if isinstance(values.get(n), tuple) else None for n in case.arrays}
    with pytest.raises(Exception) as caught:  # noqa: PT011  what it is the CPU decides
        for y in spec.run(case, {n: Tensor(a, kinds[n], device) for n, a in case.arrays.items()}):
            y.numpy()
    return caught.type, str(caught.value)


@pytest.mark.parametrize("spec", [p for p in SPECS if p.values[0].errors])
def test_errors(spec, monkeypatch):
    for values, *_ in spec.errors:
        expected = raised_on("cpu", spec, values, monkeypatch)
        assert raised_on("test", spec, values, monkeypatch) == expected
        x = Tensor([1.0, 2.0], device="test")
        assert ops.add(x, x).numpy().tolist() == [2, 4]  # the device goes on


def test_every_op_runs_here():
    assert [op for op in _core.op_names() if not _core.has_kernel(op, "test")] == []


@pytest.mark.parametrize("place", [dict(device="test"), dict(like=None)])
@pytest.mark.parametrize(
    ("make", "args"),
    [
        (ops.full, ((2, 3), 1.5)),
        (ops.arange, (3, 9)),
        (ops.uniform, ((4, 5),)),
        (ops.normal, ((4, 5),)),
        (plm.zeros, (2, 3)),
        (plm.ones, (2, 3)),
        (plm.full, ((2, 3), 2.0)),
        (plm.arange, (5,)),
        (plm.rand, (3, 3)),
        (plm.randn, (3, 3)),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_new_tensors(make, args, place):
    if "like" in place:
        place = dict(like=Tensor([1.0], device="test"))
    _core.manual_seed(3)
    here = make(*args)
    _core.manual_seed(3)
    there = make(*args, **place)
    assert (here.device, there.device) == ("cpu", "test")
    assert here.numpy().tobytes() == there.numpy().tobytes()
    with pytest.raises(ValueError, match="by device= or by like=, not by both"):
        make(*args, device="cpu", like=there)


def test_dropout_does_not_wait():
    x = Tensor(np.ones((8, 64), "f4"), device="test", requires_grad=True)
    before = _core.device_waits("test")
    y = ops.dropout(x, 0.3)
    y.sum().backward()
    assert _core.device_waits("test") == before
    assert 0 < (y.numpy() == 0).mean() < 1 and _core.device_waits("test") == before + 1
