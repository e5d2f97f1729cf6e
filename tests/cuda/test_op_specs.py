"""The op declarations of tests/ops on device "cuda", for every op that has a kernel there."""

import os
import pathlib
import re

import optest
import pytest

KERNELS = pathlib.Path(__file__).parents[2] / "cuda" / "kernels" / "kernels.def"
ON_CUDA = set(re.findall(r"^PLM_CUDA_KERNEL\((\w+)\)", KERNELS.read_text(), re.MULTILINE))


# PLM_CUDA_DTYPES: the float dtypes that are looked at; sanitizers need not see both half types.
LEFT_OUT = set(optest.FLOATS) - set(os.environ.get("PLM_CUDA_DTYPES", " ".join(optest.FLOATS)).split())


def checks():
    if not os.environ.get("PLMCORE_CUDA_PLUGIN"):
        return [pytest.param(None, id="none")]
    before, optest.DEVICE = optest.DEVICE, "cuda"  # it decides which checks there are
    try:
        specs = [s for s in optest.all_specs() if set(s.covers) <= ON_CUDA]
        return [
            pytest.param(check, id=f"{s.name}-{name}")
            for s in specs
            for name, check in s.checks()
            if name.rpartition("-")[2] not in LEFT_OUT
        ]
    finally:
        optest.DEVICE = before


@pytest.mark.parametrize("check", checks())
def test_spec(check, monkeypatch):
    monkeypatch.setattr(optest, "DEVICE", "cuda")
    check()


def errors():
    specs = [s for s in optest.all_specs() if set(s.covers) <= ON_CUDA]
    return [pytest.param(s, e, id=f"{s.name}-{k}") for s in specs for k, e in enumerate(s.errors)]


@pytest.mark.parametrize(("spec", "error"), errors())
def test_error(spec, error, monkeypatch):
    """Those in data too: the CPU's sentence at the next wait, and the device goes on."""
    monkeypatch.setattr(optest, "DEVICE", "cuda")
    spec.check_error(*error)


def test_every_kernel_has_a_spec():
    from plmcore import _core

    assert {"linear", "linear_grad", "softmax", "softmax_grad", "layer_norm", "layer_norm_grad"} <= ON_CUDA
    assert all(_core.has_kernel(op, "cuda") for op in ON_CUDA)
    assert {op for s in optest.all_specs() if set(s.covers) <= ON_CUDA for op in s.covers} == ON_CUDA
