"""Recurrent networks step by step in NumPy: the references of the ops lstm, gru and rnn."""

import numpy as np


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def clipped(x, limit):
    return np.maximum(np.minimum(x, limit), -limit) if limit else x


def unrolled(x, state, lengths, reverse, cell):
    """cell(x_t [B, C], state) -> state, a tuple of [B, ...] whose first is what is shown.

    -> y [B, T, P], 0 behind the end, and the state after each sequence's last step.
    """
    B, T = x.shape[:2]
    lengths = np.full(B, T) if lengths is None else np.asarray(lengths)
    rows, shown = np.arange(B), []
    for s in range(T):
        runs = (s < lengths)[:, None]
        t = np.maximum(lengths - 1 - s, 0) if reverse else np.full(B, s)
        after = cell(x[rows, t], state)
        state = tuple(np.where(runs, new, old) for new, old in zip(after, state))
        shown.append(state[0][None])
    if not shown:
        return np.zeros((B, T, state[0].shape[1])), *state
    at = np.arange(T)[None] + np.zeros((B, 1), int)
    seen = at < lengths[:, None]
    at = np.where(seen, lengths[:, None] - 1 - at, 0) if reverse else at
    y = np.concatenate(shown)[at, rows[:, None]]
    return np.where(seen[:, :, None], y, 0), *state


def lstm(
    x,
    weight,
    h,
    c,
    projection=None,
    lengths=None,
    reverse=False,
    cell_clip=0.0,
    projection_clip=0.0,
):
    H = c.shape[1]

    def cell(x_t, state):
        h, c = state
        z = x_t + h @ weight.T
        i, f, g, o = (z[:, k * H : (k + 1) * H] for k in range(4))
        c = clipped(sigmoid(f) * c + sigmoid(i) * np.tanh(g), cell_clip)
        m = sigmoid(o) * np.tanh(c)
        return (m if projection is None else clipped(m @ projection.T, projection_clip)), c

    return unrolled(x, (h, c), lengths, reverse, cell)


def gru(x, weight, bias, h, lengths=None, reverse=False):
    H = h.shape[1]

    def cell(x_t, state):
        (h,) = state
        z = h @ weight.T
        r = sigmoid(x_t[:, :H] + z[:, :H])
        keep = sigmoid(x_t[:, H : 2 * H] + z[:, H : 2 * H])
        q = z[:, 2 * H :] if bias is None else z[:, 2 * H :] + bias
        n = np.tanh(x_t[:, 2 * H :] + r * q)
        return ((1 - keep) * n + keep * h,)

    return unrolled(x, (h,), lengths, reverse, cell)


def rnn(x, weight, h, lengths=None, reverse=False, activation="tanh"):
    act = np.tanh if activation == "tanh" else lambda z: np.maximum(z, 0)
    return unrolled(x, (h,), lengths, reverse, lambda x_t, state: (act(x_t + state[0] @ weight.T),))
