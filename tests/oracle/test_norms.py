"""BatchNorm against torch.nn.BatchNorm1d: outputs, gradients and running statistics of several steps."""

import numpy as np
import pytest
from plmcore import Tensor, nn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
torch.set_num_threads(1)


@pytest.mark.parametrize("dtype, near", [("float32", 2e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("shape", [(2, 5), (33, 50), (3, 4, 7)])
def test_batch_norm(shape, dtype, near):
    rng = np.random.default_rng(sum(shape))
    C = shape[-1]
    ours, theirs = nn.BatchNorm(C).to(dtype), torch.nn.BatchNorm1d(C).to(getattr(torch, dtype))
    gamma, beta = rng.standard_normal((2, C))
    ours.load_state_dict(dict(ours.state_dict()) | {"gamma": gamma, "beta": beta})
    with torch.no_grad():
        theirs.weight.copy_(torch.tensor(gamma)), theirs.bias.copy_(torch.tensor(beta))
    for step in range(4):
        if step == 3:
            ours.eval(), theirs.eval()
        x, dy = (rng.standard_normal((2, *shape)) * 2 + 1).astype(dtype)
        a, b = Tensor(x, requires_grad=True), torch.tensor(x.reshape(-1, C), requires_grad=True)
        y, expected = ours(a), theirs(b)
        ours.zero_grad(), theirs.zero_grad()
        (y * Tensor(dy)).sum().backward()
        (expected * torch.tensor(dy.reshape(-1, C))).sum().backward()
        pairs = {
            "y": (y, expected),
            "x.grad": (a.grad, b.grad),
            "gamma.grad": (ours.gamma.grad, theirs.weight.grad),
            "beta.grad": (ours.beta.grad, theirs.bias.grad),
            "running_mean": (ours.running_mean, theirs.running_mean),
            "running_var": (ours.running_var, theirs.running_var),
        }
        for what, (mine, other) in pairs.items():
            other = other.detach().numpy()
            got = mine.numpy().reshape(other.shape)
            np.testing.assert_allclose(got, other, atol=near, rtol=near, err_msg=f"step {step}: {what}")
