import numpy as np
from plmcore import Tensor, nn, ops


def test_value():
    mlp = nn.MLP(6, 24, act="gelu_tanh", dropout=0.5).eval()
    x = Tensor(np.random.default_rng(0).standard_normal((2, 3, 6)).astype(np.float32))
    expected = ops.linear(
        ops.gelu(ops.linear(x, mlp.up.weight, mlp.up.bias), tanh_form=True), mlp.down.weight, mlp.down.bias
    )
    np.testing.assert_allclose(mlp(x).numpy(), expected.numpy(), atol=1e-6)
    assert (mlp.train()(x).numpy() == 0).any()


def test_no_bias():
    assert [n for n, _ in nn.MLP(6, 24, bias=False).named_parameters()] == ["up.weight", "down.weight"]
