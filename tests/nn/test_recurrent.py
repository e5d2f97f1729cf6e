"""Recurrent layers: states, lengths, programs, DropConnect. The values are compared in tests/oracle."""

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, nn, ops
from recurrent_reference import lstm

rng = np.random.default_rng(4)
KINDS = {
    "LSTM": lambda **o: nn.LSTM(6, 5, 2, **o),
    "projected": lambda **o: nn.LSTM(6, 5, 2, projection=3, cell_clip=0.4, projection_clip=0.3, **o),
    "GRU": lambda **o: nn.GRU(6, 5, 2, **o),
    "RNN": lambda **o: nn.RNN(6, 5, 2, activation="relu", **o),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def text(B=3, T=7):
    return Tensor(rng.standard_normal((B, T, 6)).astype(np.float32))


def test_one_layer_is_the_formula():
    layer = nn.LSTM(6, 5, projection=3, cell_clip=0.4, projection_clip=0.3)
    x = text()
    w = {n: p.numpy().astype(np.float64) for n, p in layer.named_parameters()}
    sums = x.numpy() @ w["weight_ih_l0"].T + w["bias_ih_l0"] + w["bias_hh_l0"]
    zeros = np.zeros((3, 3)), np.zeros((3, 5))
    expected = lstm(sums, w["weight_hh_l0"], *zeros, w["weight_hr_l0"], None, False, 0.4, 0.3)
    y, state = layer(x)
    for a, b in zip((y, state.h[0], state.c[0]), expected):
        np.testing.assert_allclose(a.numpy(), b, atol=1e-6)


@every_kind
def test_two_halves_with_a_state_are_the_whole(kind):
    layer, x = KINDS[kind](), text()
    whole, end = layer(x)
    first, state = layer(x[:, :4])
    second, after = layer(x[:, 4:], state)
    np.testing.assert_allclose(np.concatenate([first.numpy(), second.numpy()], 1), whole.numpy(), atol=1e-6)
    for a, b in zip(after, end):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-6)


@every_kind
def test_padding_changes_nothing(kind):
    layer, x, lengths = KINDS[kind](bidirectional=True), text(), [7, 0, 4]
    y, state = layer(x, lengths=np.array(lengths))
    spoilt = x.numpy().copy()
    for b, n in enumerate(lengths):
        spoilt[b, n:] = np.nan
        assert not y.numpy()[b, n:].any()
        alone, one = layer(x[b : b + 1, :n])
        np.testing.assert_allclose(y.numpy()[b : b + 1, :n], alone.numpy(), atol=1e-6)
        for a, e in zip(state, one):
            np.testing.assert_allclose(a.numpy()[:, b : b + 1], e.numpy(), atol=1e-6)
    np.testing.assert_array_equal(layer(Tensor(spoilt), lengths=np.array(lengths))[0].numpy(), y.numpy())


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_second_direction_reads_from_the_end(kind):
    both, one, x = kind(6, 5, bidirectional=True), kind(6, 5), text()
    reverse = {n[: -len("_reverse")]: p for n, p in both.named_parameters() if n.endswith("_reverse")}
    one.load_state_dict(reverse)
    y, state = both(x)
    expected, end = one(Tensor(x.numpy()[:, ::-1].copy()))
    np.testing.assert_array_equal(y.numpy()[..., 5:], expected.numpy()[:, ::-1])
    for a, b in zip(state, end):
        np.testing.assert_array_equal(a.numpy()[1:], b.numpy())


@every_kind
def test_state_is_selected_by_prompt_and_sequence(kind):
    _, state = KINDS[kind]()(text(B=3))
    live, parents = Tensor(np.array([2, 0])), Tensor(np.array([[0, 0], [0, 0]]))
    wide = state.select(live, parents)
    assert wide.batch == 2 and wide.h.shape[1] == 4
    for a, b in zip(wide, state):
        np.testing.assert_array_equal(a.numpy(), b.numpy()[:, [2, 2, 0, 0]])
    shifted = wide.rebuilt(
        {n: t + Tensor(np.arange(4, dtype="f")[:, None]) for n, t in wide.tensors().items()}
    )
    chosen = shifted.select(Tensor(np.array([1])), Tensor(np.array([[1, 0]])))
    for a, b in zip(chosen, shifted):
        np.testing.assert_array_equal(a.numpy(), b.numpy()[:, [3, 2]])


@every_kind
def test_program_carries_the_state(kind, tmp_path):
    layer = KINDS[kind]().eval()
    names = list(layer.begin(text()).tensors())
    widths = {"h": layer.out_width, "c": layer.hidden}

    def step(x, lengths, **state):
        y, after = layer(x, nn.RecurrentState(**state), lengths)
        return {"y": y, **{f"next_{n}": t for n, t in after.tensors().items()}}

    specs = {n: plm.spec("float32", 2, "B", widths[n]) for n in names}
    program = plm.trace(
        step,
        weights=dict(layer.named_parameters()),
        x=plm.spec("float32", "B", "T", 6),
        lengths=plm.spec("int64", "B"),
        **specs,
    )
    plm.export({"step": program}, tmp_path / "layer.plm")
    program = plm.load_program(tmp_path / "layer.plm")
    for B, T in ((3, 7), (1, 2)):
        x, lengths = text(B, T), np.arange(T, T - B, -1)
        state = layer.begin(x)
        for _ in range(2):
            got = program(x=x, lengths=lengths, **state.tensors())
            y, state = layer(x, state, lengths)
            np.testing.assert_array_equal(got["y"].numpy(), y.numpy())
            for n, t in state.tensors().items():
                np.testing.assert_array_equal(got[f"next_{n}"].numpy(), t.numpy())


def test_dropout_is_between_layers_only():
    layer, x = nn.LSTM(6, 5, 2, dropout=0.5), text()
    assert np.abs(layer(x)[0].numpy() - layer(x)[0].numpy()).max() > 0
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0].numpy(), layer(x)[0].numpy())
    single = nn.LSTM(6, 5, dropout=0.5)
    np.testing.assert_array_equal(single(x)[0].numpy(), single(x)[0].numpy())


@every_kind
def test_drop_connect_drops_recurrent_weights(kind):
    inner, x = KINDS[kind](), text()
    layer = nn.DropConnect(inner, 0.5)
    plm.seed(3)
    y, _ = layer(x)
    plm.seed(3)
    kept = {n: p.numpy().copy() for n, p in inner.named_parameters()}
    masked = {n: ops.dropout(p, 0.5).numpy() for n, p in inner.named_parameters() if "weight_hh" in n}
    inner.load_state_dict(kept | masked)
    np.testing.assert_array_equal(inner(x)[0].numpy(), y.numpy())
    inner.load_state_dict(kept)
    ops.sum(layer(x)[0]).backward()
    assert (inner.weight_hh_l0.grad.numpy() == 0).mean() > 0.2  # of what was dropped
    np.testing.assert_array_equal(layer.eval()(x)[0].numpy(), inner(x)[0].numpy())


def test_wrong_arguments():
    layer, x = nn.LSTM(6, 5), text()
    _, state = layer(x)
    with pytest.raises(plm.ShapeError, match=r"LSTM: h of the state must be \[1, 2, 5\].*got \[1, 3, 5\]"):
        layer(x[:2], state)
    with pytest.raises(plm.ArgumentError, match="LSTM: the state must have h and c, got h$"):
        layer(x, state.h)
    with pytest.raises(plm.ShapeError, match=r"LSTM: x must be \[B, T, 6\], got \[3, 6\]"):
        layer(x[:, 0])
    with pytest.raises(plm.ArgumentError, match=r"lengths\[1\] is 8, outside 0\.\.7 steps"):
        layer(x, lengths=np.array([1, 8, 2]))
    with pytest.raises(plm.ArgumentError, match="RNN: activation must be tanh or relu, got 'gelu'"):
        nn.RNN(6, 5, activation="gelu")
    with pytest.raises(plm.ArgumentError, match="LSTM: inputs, hidden and layers must be positive"):
        nn.LSTM(6, 0)
    with pytest.raises(plm.ArgumentError, match="LSTM: cell_clip must be positive, got 0"):
        nn.LSTM(6, 5, cell_clip=0.0)
    with pytest.raises(plm.ArgumentError, match=r"DropConnect: p must be in \[0, 1\), got 1"):
        nn.DropConnect(layer, 1.0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("B", [1, 3, 4, 7, 8, 9, 33])
@pytest.mark.parametrize("kind", ["LSTM", "projected", "GRU", "RNN"])
def test_single_steps_are_the_whole(kind, B, dtype):
    """A step alone reads the recurrent weight as it lies; widths that no block of units divides."""
    made = {
        "LSTM": lambda: nn.LSTM(9, 70),
        "projected": lambda: nn.LSTM(9, 70, projection=67),
        "GRU": lambda: nn.GRU(9, 70),
        "RNN": lambda: nn.RNN(9, 70),
    }
    layer = made[kind]().to(dtype)
    x = Tensor(rng.standard_normal((B, 3, 9)), dtype=dtype, requires_grad=True)
    whole, _ = layer(x)
    (whole * whole).sum().backward()
    expected = {n: p.grad.numpy().astype(np.float64) for n, p in layer.named_parameters()}
    layer.zero_grad()
    state, ys = None, []
    for t in range(3):
        y, state = layer(ops.slice(x, 1, t, t + 1), state)
        ys.append(y)
    stepped = ops.concat(ys, 1)
    near = dict(atol={"float32": 2e-6, "float64": 1e-12, "bfloat16": 2e-2}[dtype])
    np.testing.assert_allclose(stepped.numpy().astype(np.float64), whole.numpy().astype(np.float64), **near)
    (stepped * stepped).sum().backward()
    if dtype != "bfloat16":  # whose sums are rounded at every step
        for name, p in layer.named_parameters():
            scale = max(1.0, np.abs(expected[name]).max())
            np.testing.assert_allclose(p.grad.numpy(), expected[name], atol=10 * near["atol"] * scale)
