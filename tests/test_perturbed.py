"""Proof of the harness: with slightly wrong values from one kernel, the checks of its op fail.

Every tensor that a kernel writes is spoilt in four ways (cpp/cpu/perturb.h), one at a time. In each dtype a
value check or a gradient check of the op's own declaration must notice each of them.
"""

import pytest
from optest import TYPED_ERRORS, all_specs
from plmcore import _core

MUTATIONS = ("scale", "lane", "last", "row")
PART = {"float64": 2**-30, "float32": 2**-10, "float16": 2**-4, "bfloat16": 2**-2}  # by which values change
VIEWS = {"reshape", "narrow", "split_rows"}  # without a kernel
ONE_NUMBER = {"rng_advance", "global_norm", "clip_scale"}  # or two: there is no lane and no row
ONE_AXIS = {  # tensors without rows: indices, and gradients of one axis
    "arange": {0},
    "linear_grad": {2},
    "embedding_grad_rows": {0},
    "merge_rows": {0},
    "layer_norm_grad": {1, 2},
    "rms_norm_grad": {1},
    "residual_layer_norm_grad": {1, 2},
    "pack_rows": {1},
    "select_labelled": {1, 2},
    "adafactor_step": {2},
    "gru_grad": {3},
    "conv1d_grad": {2},
}

needs_hook = pytest.mark.skipif(
    not hasattr(_core, "perturb_kernel"),
    reason="this build cannot perturb kernels; configure with -DPLM_TEST_HOOKS=ON",
)


def specs_of(op: str, dtype: str) -> list:
    return [s for s in all_specs() if op in s.covers and dtype in s.dtypes]


def checks(op: str, dtype: str):
    """Of the op's declarations, case by case, the cheap ones first."""
    for spec in specs_of(op, dtype):
        for k in range(len(spec.cases)):
            yield lambda: spec.check_value(k, dtype)
            if spec.grad_names(spec.case(k)):
                yield lambda: spec.check_gradient_in(k, dtype)


def notices(check) -> bool:
    try:
        check()
    except (AssertionError, IndexError, *TYPED_ERRORS):
        return True
    return False


def applies(op: str, tensor: int, mutation: str) -> bool:
    if op in ONE_NUMBER:
        return mutation in ("scale", "last")
    return mutation != "row" or tensor not in ONE_AXIS.get(op, ())


def unnoticed(op: str, dtype: str) -> dict[tuple[int, str], int]:
    """(tensor that the kernel writes, mutation) -> how many values changed, and no check failed."""
    left: dict[tuple[int, str], int] = {}
    tensors = 0
    for check in checks(op, dtype):
        trials = list(left) or [(0, MUTATIONS[0])]  # the first says how many tensors there are
        for tensor, mutation in trials:
            _core.perturb_kernel(op, mutation, tensor, PART[dtype])
            failed = notices(check)
            values, found = _core.perturbed()
            new = [(t, m) for t in range(tensors, found) for m in MUTATIONS if applies(op, t, m)]
            left |= dict.fromkeys(new, 0)
            trials += new if tensors else new[1:]
            tensors = max(tensors, found)
            if failed:
                assert values, f"a check of `{op}` fails with a kernel that is as it should be"
                del left[tensor, mutation]
            elif found:
                left[tensor, mutation] += values
        if tensors and not left:
            return {}
    assert tensors, f"no check of `{op}` runs its kernel in {dtype}"
    return left


@needs_hook
@pytest.mark.parametrize(
    "op, dtype", [(op, d) for op in _core.op_names() if op not in VIEWS for d in PART if specs_of(op, d)]
)
def test_perturbed_kernel_is_noticed(op, dtype):
    try:
        left = unnoticed(op, dtype)
    finally:
        _core.perturb_kernel("")
    assert not left, "; ".join(
        f"tensor {tensor} of `{op}`, {mutation}: {values} values changed and no check failed"
        if values
        else f"tensor {tensor} of `{op}`, {mutation}: no case of the declaration is large enough"
        for (tensor, mutation), values in left.items()
    )
