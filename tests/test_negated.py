"""Proof of the harness: with the sign of one backward rule flipped, the gradient check of its op fails."""

import pytest
from optest import all_specs
from plmcore import _core

needs_hook = pytest.mark.skipif(
    not hasattr(_core, "negate_backward"),
    reason="this build cannot negate backward rules; configure with -DPLM_TEST_HOOKS=ON",
)


def notices(spec) -> bool:
    for k in range(len(spec.cases)):
        if not spec.grad_names(spec.case(k)):
            continue
        try:
            spec.check_gradient(k)
        except AssertionError:
            return True
    return False


@needs_hook
@pytest.mark.parametrize("op", [op for op in _core.op_names() if _core.is_differentiable(op)])
def test_negated_rule_is_noticed(op):
    specs = [s for s in all_specs() if op in s.covers]
    _core.negate_backward(op)
    try:
        assert any(notices(s) for s in specs), (
            f"the backward rule of `{op}` was negated and no gradient check failed"
        )
    finally:
        _core.negate_backward("")
