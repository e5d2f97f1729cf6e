import numpy as np
import plmcore as plm
import pytest
import quantized_reference
from plmcore import Tensor, nn
from plmcore.nn.quantized import is_quantizable, quantize_layer

rng = np.random.default_rng(0)
X = rng.standard_normal((2, 5, 37)).astype(np.float32)
Q = rng.integers(-127, 128, (11, 37)).astype(np.int8)
SCALE = rng.uniform(0.001, 0.01, 11).astype(np.float32)


def small(layer, weights="int8"):
    """The layer with other weights: those above."""
    weight = Tensor(Q) if weights == "int8" else Tensor(Q.astype(np.float32), dtype="bfloat16")
    quantize_layer(layer, nn.QuantizedWeight(weight), nn.Buffer(Tensor(SCALE)) if weights == "int8" else None)
    return layer


@pytest.mark.parametrize("weights", ["int8", "bfloat16"])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(weights, bias):
    layer = small(nn.Linear(37, 11, bias, bias_init=nn.init.normal(1.0)), weights)
    scale = SCALE if weights == "int8" else None
    expected = quantized_reference.linear(X, Q, scale, layer.bias.numpy() if bias else None)
    # Sums of floats up to 10^3, with cancellation.
    close = dict(rtol=2e-6, atol=1e-5 if weights == "int8" else 1e-3)
    with plm.no_grad():
        np.testing.assert_allclose(layer(Tensor(X)).numpy(), expected, **close)
        layer.activation = "relu"
        np.testing.assert_allclose(layer(Tensor(X)).numpy(), np.maximum(expected, 0), **close)


def test_a_bias_of_the_caller():
    bias = rng.standard_normal(11).astype(np.float32)
    for layer in (nn.Linear(37, 11, bias=False), small(nn.Linear(37, 11, bias=False))):
        with plm.no_grad():
            np.testing.assert_allclose(
                layer(Tensor(X), Tensor(bias)).numpy(), layer(Tensor(X)).numpy() + bias, rtol=1e-5, atol=1e-5
            )


@pytest.mark.parametrize("weights", ["int8", "bfloat16"])
def test_embedding(weights):
    layer = small(nn.Embedding(11, 37, padding_idx=3), weights)
    ids = np.array([[1, 10, 3], [0, 0, 7]])
    expected = quantized_reference.embedding(Q, ids, SCALE if weights == "int8" else None)
    assert np.array_equal(layer(Tensor(ids)).numpy(), expected)
    assert layer.dtype == "float32" and nn.Embedding(2, 3).to("bfloat16").dtype == "bfloat16"


def test_a_row_of_zeros_and_an_input_of_zeros():
    layer = small(nn.Linear(37, 11))
    layer.scale = nn.Buffer(Tensor(np.zeros(11, np.float32)))
    assert not layer(Tensor(X)).numpy().any()
    assert not small(nn.Linear(37, 11))(Tensor(np.zeros((3, 37), np.float32))).numpy().any()


def test_counted_and_named_like_the_layer_it_was():
    table = nn.Embedding(11, 37)
    model = nn.Sequential(table, nn.Linear(37, 11, weight=table.weight))
    before = model.num_parameters()
    weight, scale = nn.QuantizedWeight(Tensor(Q)), nn.Buffer(Tensor(SCALE))
    for layer in model:
        quantize_layer(layer, weight, scale)
    assert model.num_parameters() == before == 11 * 37 + 11
    assert set(model.state_dict()) == {"0.weight", "0.scale", "1.bias"}
    assert "int8[11, 37]" in repr(model) and "QuantizedLinear" in repr(model)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda m: m.train(),
            r"train: '1' has int8 weights, which cannot be trained; plm.load\(dir, dtype=\"float32\"",
        ),
        (lambda m: m.requires_grad_(), "requires_grad_: '1' has int8 weights, which have no gradients"),
        (lambda m: m.to("float64"), "to: '1' has int8 weights, which have the one dtype"),
    ],
)
def test_what_it_cannot(call, message):
    model = nn.Sequential(nn.Dropout(0.5), small(nn.Linear(37, 11))).eval()
    with pytest.raises(plm.ArgumentError, match=message):
        call(model)
    assert not model[0].training  # nothing was changed


def test_which_layers_can_be():
    class Other(nn.Linear):
        def __call__(self, x):
            return super().__call__(x)

    class Named(nn.Linear):
        pass

    assert (
        is_quantizable(nn.Linear(2, 2)) and is_quantizable(nn.Embedding(2, 2)) and is_quantizable(Named(2, 2))
    )
    assert not is_quantizable(Other(2, 2)) and not is_quantizable(nn.LayerNorm(2))
