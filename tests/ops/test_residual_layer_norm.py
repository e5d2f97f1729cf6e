import numpy as np
import pytest
from optest import OpSpec
from plmcore import Tensor, _core, ops


def residual_layer_norm(x, residual, gamma, beta, eps):
    s = x + residual
    return (s - s.mean(-1, keepdims=True)) / np.sqrt(s.var(-1, keepdims=True) + eps) * gamma + beta, s


def torch_twin(t, x, residual, gamma, beta, eps):
    s = x + residual
    return t.nn.functional.layer_norm(s, gamma.shape, gamma, beta, eps), s


def case(*shape, eps=1e-5):
    return dict(x=shape, residual=shape, gamma=shape[-1:], beta=shape[-1:], eps=eps)


spec = OpSpec(
    op=ops.residual_layer_norm,
    ref=residual_layer_norm,
    cases=[
        case(2, 3, 8),
        case(5, 1, 8),
        case(5, 769, eps=1e-12),
        case(37, 37, eps=0.5),
        case(3),
        case(0, 8),
        case(70, 3, 8),
    ],
    dims={"x": "B T 8", "residual": "B T 8"},
    errors=[
        (dict(case(2, 6), gamma=(5,)), r"residual_layer_norm: gamma and beta must be \[6\]"),
        (dict(case(2, 6), residual=(1, 6)), r"residual must have the shape of x \[2, 6\], got \[1, 6\]"),
        (dict(case(2, 6), beta=np.ones(6)), r"inputs must have one dtype", TypeError),
        (dict(case(2, 6), x=(), residual=()), r"x must have at least one axis"),
    ],
    bench=case(4096, 768),
    torch=torch_twin,
)
test_all = spec.tests()


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_gradient_through_either_output(used):
    rng = np.random.default_rng(0)
    x, r, g, b = (rng.standard_normal(s) for s in ((5, 37), (5, 37), (37,), (37,)))
    dy = [rng.standard_normal((5, 37)) for _ in range(2)]

    def run(split):
        leaves = [Tensor(a, requires_grad=True) for a in (x, r, g, b)]
        if split:
            s = ops.add(leaves[0], leaves[1])
            outputs = ops.layer_norm(s, leaves[2], leaves[3], 1e-5), s
        else:
            outputs = ops.residual_layer_norm(*leaves, 1e-5)
        found = _core.grad([outputs[i] for i in used], leaves, [Tensor(dy[i]) for i in used])
        return [np.zeros(a.shape) if d is None else d.numpy() for a, d in zip((x, r, g, b), found)]

    for fused, plain in zip(run(False), run(True)):
        np.testing.assert_allclose(fused, plain, rtol=1e-12, atol=1e-12)
