"""The op declarations of tests/ops on device "cuda", for every op that has a kernel there."""

import os
import pathlib
import re

import optest
import pytest

KERNELS = pathlib.Path(__file__).parents[2] / "cuda" / "kernels" / "kernels.def"
ON_CUDA = set(re.findall(r"^PLM_CUDA_KERNEL\((\w+)\)", KERNELS.read_text(), re.MULTILINE))


def checks():
    if not os.environ.get("PLMCORE_CUDA_PLUGIN"):
        return [pytest.param(None, id="none")]
    before, optest.DEVICE = optest.DEVICE, "cuda"  # it decides which checks there are
    try:
        specs = [s for s in optest.all_specs() if set(s.covers) <= ON_CUDA]
        return [pytest.param(check, id=f"{s.name}-{name}") for s in specs for name, check in s.checks()]
    finally:
        optest.DEVICE = before


@pytest.mark.parametrize("check", checks())
def test_spec(check, monkeypatch):
    monkeypatch.setattr(optest, "DEVICE", "cuda")
    check()


def test_every_kernel_has_a_spec():
    from plmcore import _core

    assert {"linear", "linear_grad", "softmax", "softmax_grad", "layer_norm", "layer_norm_grad"} <= ON_CUDA
    assert all(_core.has_kernel(op, "cuda") for op in ON_CUDA)
    assert {op for s in optest.all_specs() if set(s.covers) <= ON_CUDA for op in s.covers} == ON_CUDA
