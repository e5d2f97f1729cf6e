"""No op without a spec, no differentiable op without a gradient check."""

import pytest
from optest import all_specs
from plmcore import _core


@pytest.mark.parametrize("op", _core.op_names())
def test_op_has_a_spec(op):
    specs = [s for s in all_specs() if op in s.covers]
    assert specs, f"no spec in tests/ops covers `{op}`"
    if _core.is_differentiable(op):
        assert any(s.grad_names(s.case(k)) for s in specs for k in range(len(s.cases))), (
            f"no spec checks the gradient of `{op}`"
        )


def test_specs_name_real_ops():
    unknown = {op for s in all_specs() for op in s.covers} - set(_core.op_names())
    assert not unknown, f"specs cover ops that do not exist: {sorted(unknown)}"
