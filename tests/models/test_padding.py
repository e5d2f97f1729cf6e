import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, ops
from plmcore.models import padding
from plmcore.models.padding import EVERYWHERE, FIRST, Layout, Packed, Padded

rng = np.random.default_rng(0)
MASKS = {
    "right": np.array([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]]),
    "left": np.array([[0, 1, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1]]),
    "holes": np.array([[0, 1, 0, 1], [1, 0, 1, 1], [0, 0, 1, 0]]),
}
B, T, H, D = 3, 4, 2, 3
X = rng.standard_normal((B, T, H * D)).astype(np.float32)
QKV = rng.standard_normal((B, T, 3, H, D)).astype(np.float32)
LABELS = np.array([[5, -100, 7, 8], [-100, -100, -100, 9], [1, -100, 3, -100]])


def of(mask, *reads, weights=False):
    return padding.layout(plm.zeros(B, T), Tensor(MASKS[mask]) if mask else None, reads, weights)


def test_which_layout():
    ones = Tensor(np.ones((B, T)))
    assert type(of(None)) is type(padding.layout(plm.zeros(B, T), ones)) is Layout
    assert (
        type(of("left")) is Packed
        and type(of("left", EVERYWHERE)) is type(of("left", weights=True)) is Padded
    )
    assert "mask" not in of("right", FIRST).attention and "mask" in of("left", FIRST).attention
    inside = Tensor(np.where(MASKS["left"], LABELS, -100))
    assert "mask" not in of("left", inside).attention and "mask" in of("left", Tensor(LABELS)).attention
    assert "mask" not in of("left", None).attention
    with pytest.raises(ValueError, match=r"attention_mask must be \[3, 4\] like input_ids, got \[3, 5\]"):
        padding.layout(plm.zeros(B, T), Tensor(np.ones((3, 5))))


@pytest.mark.parametrize(
    "reads", [(), (FIRST,), (Tensor(LABELS),), (FIRST, Tensor(LABELS)), (EVERYWHERE,)], ids=str
)
@pytest.mark.parametrize("mask", [None, *MASKS])
def test_rows_attention_and_back(mask, reads):
    seen = np.ones((B, T), bool) if mask is None else MASKS[mask].astype(bool)
    layout = of(mask, *reads)
    np.testing.assert_array_equal(
        layout.unpack(layout.pack(Tensor(X))).numpy(), np.where(seen[..., None], X, 0)
    )
    positions = layout.pack(Tensor(np.tile(np.arange(T), (B, 1)))).numpy()
    np.testing.assert_array_equal(np.broadcast_to(layout.positions().numpy(), positions.shape), positions)
    # every row looks at what the mask shows, and so do the masked rows that are read
    y = ops.attention(layout.pack(Tensor(QKV)), **layout.attention)
    q, k, v = QKV.transpose(2, 0, 3, 1, 4)
    scores = np.where(seen[:, None, None], q @ k.swapaxes(-1, -2) / np.sqrt(D), -np.inf)
    w = np.exp(scores - scores.max(-1, keepdims=True))
    full = (w / w.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(B, T, H * D)
    rows = ops.reshape(y, (*y.shape[:-2], H * D))
    np.testing.assert_allclose(layout.unpack(rows).numpy(), np.where(seen[..., None], full, 0), atol=1e-5)
    if FIRST in [r for r in reads if isinstance(r, str)]:
        np.testing.assert_allclose(layout.first(rows).numpy(), full[:, 0], atol=1e-5)
    if any(isinstance(r, Tensor) for r in reads):
        found, labels = layout.labelled(rows, Tensor(LABELS))
        np.testing.assert_allclose(found.numpy(), full[LABELS != -100], atol=1e-5)
        np.testing.assert_array_equal(labels.numpy(), LABELS[LABELS != -100])


def test_weights_of_hidden_positions_are_zero():
    layout = of("right", weights=True)
    w = layout.unpack_weights(Tensor(np.ones((B, H, T, T), np.float32))).numpy()
    assert (w.sum((1, 3)) == MASKS["right"] * H * T).all()
    assert layout.collected == [] and layout.attention["weights"] is layout.collected


def test_a_sequence_of_padding_only():
    mask = Tensor(np.array([[0, 0], [1, 0]]))
    layout = padding.layout(mask, mask)
    y = ops.attention(layout.pack(Tensor(QKV[:2, :2].copy())), **layout.attention)
    assert y.shape == (1, H, D) and layout.unpack(y).shape == (2, 2, H, D)


def test_traced():
    def f(x, mask, labels):
        layout = padding.layout(mask, mask, (FIRST, labels))
        rows = layout.pack(x)
        return layout.unpack(rows), layout.first(rows), *layout.labelled(rows, labels)

    program = plm.trace(
        f,
        x=plm.spec("float32", "B", "T", 6),
        mask=plm.spec("int64", "B", "T"),
        labels=plm.spec("int64", "B", "T"),
    )
    for mask in MASKS.values():
        back, first, rows, labels = program(x=X, mask=mask, labels=LABELS)
        np.testing.assert_array_equal(back.numpy(), np.where(mask[..., None], X, 0))
        np.testing.assert_array_equal(first.numpy(), X[:, 0])
        np.testing.assert_array_equal(rows.numpy(), X[LABELS != -100])
        np.testing.assert_array_equal(labels.numpy(), LABELS[LABELS != -100])


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    "mask, kept, reads",
    [
        ("right", [[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]], ()),
        ("left", [[0, 1, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1]], ()),
        ("holes", [[0, 1, 1, 1], [1, 1, 1, 1], [0, 0, 1, 0]], ()),
        ("holes", [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]], (Tensor(LABELS),)),
    ],
)
def test_gapless_rows_keep_their_distances(mask, kept, reads, traced):
    distance = np.arange(T)[None, :] - np.arange(T)[:, None]
    bias = Tensor(
        rng.standard_normal((H, 2 * T)).astype(np.float32)[:, distance + T][None]
    )  # of the distance alone

    def run(qkv, mask):
        layout = padding.layout(mask, mask, reads, gapless=True)
        y = ops.attention(layout.pack(qkv), bias=bias, **layout.attention)
        return layout.unpack(y), layout.index

    if traced:
        y, index = plm.trace(run, qkv=plm.spec("float32", B, T, 3, H, D), mask=plm.spec("int64", B, T))(
            qkv=QKV, mask=MASKS[mask]
        )
    else:
        y, index = run(Tensor(QKV), Tensor(MASKS[mask]))
    seen = Tensor(MASKS[mask].astype(bool)).reshape(B, 1, 1, T)
    expected = ops.attention(Tensor(QKV), bias=bias, mask=seen).numpy()
    expected[MASKS[mask] == 0] = 0
    assert index.numpy().tolist() == np.flatnonzero(kept).tolist()
    np.testing.assert_allclose(y.numpy(), expected, atol=1e-6)
