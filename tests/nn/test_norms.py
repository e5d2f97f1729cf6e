import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, nn

x = np.random.default_rng(0).standard_normal((2, 3, 7)).astype(np.float32) * 3 + 1


def test_layer_norm():
    norm = nn.LayerNorm(7, eps=1e-3)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(norm(Tensor(x)).numpy(), expected, atol=1e-5)
    assert [n for n, _ in norm.named_parameters()] == ["gamma", "beta"]
    assert "eps=0.001" in repr(norm)


def test_rms_norm():
    norm = nn.RMSNorm(7, eps=1e-3)
    np.testing.assert_allclose(
        norm(Tensor(x)).numpy(), x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3), atol=1e-5
    )
    assert [n for n, _ in norm.named_parameters()] == ["gamma"]


def test_layer_norm_with_a_residual():
    x, r = (np.random.default_rng(i).standard_normal((2, 3, 8)).astype(np.float32) for i in (1, 2))
    norm = nn.LayerNorm(8)
    expected = norm(Tensor(x + r)).numpy()
    np.testing.assert_allclose(norm(Tensor(x), residual=Tensor(r)).numpy(), expected, atol=1e-6)
    y, s = norm.with_sum(Tensor(x), Tensor(r))
    np.testing.assert_allclose(y.numpy(), expected, atol=1e-6)
    np.testing.assert_array_equal(s.numpy(), x + r)


def test_initialiser_of_rms_norm():
    assert (nn.RMSNorm(7, gamma_init=nn.init.constant(0.5)).gamma.numpy() == 0.5).all()


def followed(running, now, momentum=0.1):
    return running * (1 - momentum) + now * momentum


@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 7)])
def test_batch_norm_in_training_and_eval_mode(shape):
    rng = np.random.default_rng(1)
    norm = nn.BatchNorm(7, eps=1e-3)
    mean, var = np.zeros(7), np.ones(7)
    for _ in range(3):
        x = (rng.standard_normal(shape) * 3 + 1).astype(np.float32)
        rows = x.reshape(-1, 7).astype(np.float64)
        expected = (x - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-3)
        np.testing.assert_allclose(norm(Tensor(x)).numpy(), expected, atol=1e-5)
        mean, var = followed(mean, rows.mean(0)), followed(var, rows.var(0, ddof=1))
    np.testing.assert_allclose(norm.running_mean.numpy(), mean, atol=1e-6)
    np.testing.assert_allclose(norm.running_var.numpy(), var, atol=1e-5)
    expected = (x - mean) / np.sqrt(var + 1e-3)
    np.testing.assert_allclose(norm.eval()(Tensor(x)).numpy(), expected, atol=1e-5)
    np.testing.assert_allclose(norm.running_mean.numpy(), mean, atol=1e-6)
    assert [n for n, _ in norm.named_parameters()] == ["gamma", "beta"]
    assert [n for n, _ in norm.named_buffers()] == ["running_mean", "running_var"]
    assert "momentum=0.1" in repr(norm)


def test_batch_norm_inside_inference_changes_nothing():
    norm = nn.BatchNorm(3)
    with nn.inference():
        norm(Tensor(np.full((4, 3), 5, np.float32)))
    assert (norm.running_mean.numpy() == 0).all()


def test_running_statistics_go_through_state_and_dtype():
    norm, other = nn.BatchNorm(7), nn.BatchNorm(7)
    norm(Tensor(x))
    other.load_state_dict(norm.state_dict())
    np.testing.assert_array_equal(other.running_var.numpy(), norm.running_var.numpy())
    double = norm.to("float64")
    double(Tensor(x.astype(np.float64)))
    assert double.running_mean.dtype == "float64" and type(double.running_mean) is nn.Buffer


def test_a_batch_that_is_not_finite_leaves_the_statistics():
    norm = nn.BatchNorm(2)
    norm(Tensor(np.float32([[1, 2], [3, np.nan]])))
    np.testing.assert_allclose(norm.running_mean.numpy(), [0.2, 0])
    np.testing.assert_allclose(norm.running_var.numpy(), [1.1, 1], atol=1e-6)


def test_batch_norm_refuses():
    with pytest.raises(plm.ArgumentError, match=r"two values or more of each feature, got \[1, 3\]"):
        nn.BatchNorm(3)(Tensor(np.zeros((1, 3), np.float32)))
    with pytest.raises(plm.ShapeError, match=r"x must be \[..., 3\], got \[2, 4\]"):
        nn.BatchNorm(3)(Tensor(np.zeros((2, 4), np.float32)))
    with pytest.raises(plm.ArgumentError, match="momentum must be in"):
        nn.BatchNorm(3, momentum=2)
    with pytest.raises(plm.TraceError, match="trace in eval mode"):
        plm.trace(nn.BatchNorm(3), x=plm.spec("float32", "B", 3))


def test_batch_norm_in_a_program():
    norm = nn.BatchNorm(7)
    norm(Tensor(x))
    norm.eval()
    program = plm.trace(norm, x=plm.spec("float32", "B", "T", 7))
    np.testing.assert_allclose(program(x=x).numpy(), norm(Tensor(x)).numpy(), atol=1e-6)
