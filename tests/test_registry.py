"""No op without a spec, no differentiable op without a gradient check, and no spec that leaves a kind of case
out.
"""

import pytest
from optest import all_specs
from plmcore import _core

OPS = _core.op_names()
ONE_NUMBER = {"rng_advance", "clip_scale"}  # their inputs have a fixed size
EMPTY_ELSEWHERE = {"adafactor_step"}  # a test of its own: the reference divides by the number of elements
TAKES_ANYTHING = {"copy"}
VIEWS = {"reshape", "narrow", "split_rows"}  # without a kernel


def cases_of(op):
    return [(s, s.case(k)) for s in all_specs() if op in s.covers for k in range(len(s.cases))]


@pytest.mark.parametrize("op", OPS)
def test_op_has_a_spec(op):
    specs = [s for s in all_specs() if op in s.covers]
    assert specs, f"no spec in tests/ops covers `{op}`"
    if _core.is_differentiable(op):
        assert any(s.grad_names(s.case(k)) for s in specs for k in range(len(s.cases))), (
            f"no spec checks the gradient of `{op}`"
        )


@pytest.mark.parametrize("op", [op for op in OPS if _core.is_differentiable(op)])
def test_gradients_are_checked_at_four_shapes_and_across_a_vector(op):
    checked = [case for spec, case in cases_of(op) if spec.grad_names(case)]
    shapes = {tuple((name, a.shape) for name, a in case.arrays.items()) for case in checked}
    assert len(shapes) >= 4, f"`{op}`: the gradient is checked at {len(shapes)} shapes only: {shapes}"
    sizes = {n for case in checked for a in case.arrays.values() for n in a.shape}
    assert any(n > 32 and n % 16 for n in sizes), (
        f"`{op}`: no axis crosses a vector and leaves a remainder: {sizes}"
    )


@pytest.mark.parametrize("op", sorted(set(OPS) - ONE_NUMBER - EMPTY_ELSEWHERE))
def test_op_is_tried_on_nothing(op):
    def empty(spec, case):
        inputs = case.rounded("float32" if "float32" in spec.dtypes else spec.dtypes[0])
        return any(not a.size for a in inputs.values()) or any(not y.size for y in spec.forward(case, inputs))

    assert any(empty(spec, case) for spec, case in cases_of(op)), (
        f"`{op}`: no case has an empty input or output"
    )


@pytest.mark.parametrize("op", sorted(set(OPS) - TAKES_ANYTHING))
def test_op_has_errors(op):
    assert any(s.errors for s in all_specs() if op in s.covers), f"`{op}`: no spec declares an error"


@pytest.mark.parametrize("op", sorted(set(OPS) - VIEWS))
def test_op_has_a_benchmark(op):
    assert any(s.benchmarks for s in all_specs() if op in s.covers), (
        f"`{op}`: no spec declares a `bench` case"
    )


def test_specs_name_real_ops():
    unknown = {op for s in all_specs() for op in s.covers} - set(OPS)
    assert not unknown, f"specs cover ops that do not exist: {sorted(unknown)}"
