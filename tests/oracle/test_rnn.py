"""LSTM, GRU, RNN and Conv1d against torch.nn: drawn shapes, lengths, states, outputs and gradients."""

import numpy as np
import pytest
from plmcore import Tensor, nn

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
torch.set_num_threads(1)

KINDS = {
    "LSTM": lambda rng: dict(projection=int(rng.integers(0, 2)) * int(rng.integers(1, 9))),
    "GRU": lambda rng: {},
    "RNN": lambda rng: dict(activation=str(rng.choice(["tanh", "relu"]))),
}
RENAMED = {"projection": "proj_size", "activation": "nonlinearity"}


def drawn(kind, seed):
    """Two layers with the same weights, x, lengths or None, and whether a state is given."""
    rng = np.random.default_rng(seed)
    size = lambda high: int(rng.integers(1, high))
    inputs, hidden, layers = size(40), size(48), size(4)
    options = KINDS[kind](rng)
    if options.get("projection", 0) >= hidden:
        options["projection"] = 0
    options |= dict(bidirectional=bool(rng.integers(2)), bias=bool(rng.integers(4)))
    theirs = getattr(torch.nn, kind)(
        inputs, hidden, layers, batch_first=True, **{RENAMED.get(k, k): v for k, v in options.items()}
    ).double()
    ours = getattr(nn, kind)(inputs, hidden, layers, **options)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    B, T = size(9), size(24)
    x = rng.standard_normal((B, T, inputs))
    lengths = rng.integers(1, T + 1, B) if rng.integers(2) else None
    return rng, ours, theirs, x, lengths, bool(rng.integers(2))


def near(what, ours, expected, tolerance):
    ours, expected = ours.numpy().astype(np.float64), expected.detach().numpy()
    assert ours.shape == expected.shape, f"{what}: {ours.shape}, expected {expected.shape}"
    error, scale = np.abs(ours - expected).max(initial=0), max(np.abs(expected).max(initial=0), 1e-3)
    assert error <= tolerance * scale, f"{what}: off by {error:.2e}, {tolerance * scale:.2e} allowed"


def in_torch(layer, x, state, lengths):
    if lengths is None:
        return layer(x, state)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        x, torch.tensor(lengths), batch_first=True, enforce_sorted=False
    )
    y, state = layer(packed, state)
    return torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0], state


def compare(kind, seed, dtype, value, gradient):
    rng, ours, theirs, x, lengths, carried = drawn(kind, seed)
    ours = ours.to(dtype)
    # What float32 cannot hold is no error of ours.
    weights = {n: p.detach().numpy().astype(dtype) for n, p in theirs.named_parameters()}
    ours.load_state_dict(weights)
    theirs.load_state_dict({n: torch.tensor(w.astype(np.float64)) for n, w in weights.items()})
    held = lambda a: a.astype(dtype).astype(np.float64)
    x = held(x)
    tx = torch.tensor(x, requires_grad=True)
    mx = Tensor(x, dtype=dtype, requires_grad=True)
    before, tbefore = None, None
    if carried:
        widths = [ours.out_width, ours.hidden][: 2 if kind == "LSTM" else 1]
        arrays = [held(rng.standard_normal((ours.layers * ours.directions, x.shape[0], w))) for w in widths]
        ts, ms = (
            [torch.tensor(a, requires_grad=True) for a in arrays],
            [Tensor(a, dtype=dtype, requires_grad=True) for a in arrays],
        )
        before, tbefore = nn.RecurrentState(*ms), tuple(ts) if kind == "LSTM" else ts[0]
    y, state = ours(mx, before, lengths)
    ty, tstate = in_torch(theirs, tx, tbefore, lengths)
    outputs = [y, *state]
    expected = [ty, *(tstate if kind == "LSTM" else [tstate])]
    for name, a, b in zip("yhc"[: len(expected)], outputs, expected, strict=True):
        near(name, a, b, value)
    seeds = [held(rng.standard_normal(tuple(o.shape))) for o in outputs]
    loss = sum((o * Tensor(s, dtype=dtype)).sum() for o, s in zip(outputs, seeds))
    loss.backward()
    sum((o * torch.tensor(s)).sum() for o, s in zip(expected, seeds)).backward()
    near("gradient of x", mx.grad, tx.grad, gradient)
    if carried:
        for m, t in zip(ms, ts):
            near("gradient of the state", m.grad, t.grad, gradient)
    tgrads = dict(theirs.named_parameters())
    for name, p in ours.named_parameters():
        near(f"gradient of {name}", p.grad, tgrads[name].grad, gradient)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", KINDS)
def test_torch(kind, seed):
    compare(kind, seed, "float32", 2e-6, 2e-5)


@pytest.mark.parametrize("seed", range(20, 26))
@pytest.mark.parametrize("kind", KINDS)
def test_float64(kind, seed):
    compare(kind, seed, "float64", 1e-12, 1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_conv1d(seed):
    rng = np.random.default_rng(seed)
    C, O, W, B = (int(rng.integers(1, n)) for n in (20, 40, 8, 6))
    T, padding = W + int(rng.integers(0, 20)), int(rng.integers(0, W))
    theirs = torch.nn.Conv1d(C, O, W, padding=padding).double()
    ours = nn.Conv1d(C, O, W, padding=padding).to("float64")
    ours.load_state_dict({n: p.detach().numpy() for n, p in theirs.named_parameters()})
    x = rng.standard_normal((B, T, C))
    mx, tx = Tensor(x, dtype="float64", requires_grad=True), torch.tensor(x, requires_grad=True)
    y, ty = ours(mx), theirs(tx.transpose(1, 2)).transpose(1, 2)
    near("y", y, ty, 1e-12)
    (y * y).sum().backward()
    (ty * ty).sum().backward()
    near("gradient of x", mx.grad, tx.grad, 1e-12)
    for (name, p), t in zip(ours.named_parameters(), theirs.parameters()):
        near(f"gradient of {name}", p.grad, t.grad, 1e-12)
