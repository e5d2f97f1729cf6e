import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, ops
from plmcore.models import relative

rng = np.random.default_rng(0)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-11), ("float32", 3e-7)])
def test_sinusoids(dtype, tolerance):
    positions = np.array([[0, 1, -1, 255, 256], [257, -256, -257, relative.LIMIT - 1, -relative.LIMIT]])
    angles = positions[..., None] * 10000.0 ** (-np.arange(0, 10, 2) / 10)
    found = relative.sinusoids(Tensor(positions), 10, dtype)
    assert found.dtype == dtype
    np.testing.assert_allclose(
        found.numpy(), np.concatenate([np.sin(angles), np.cos(angles)], -1), atol=tolerance
    )


def test_positions_have_an_end():
    with pytest.raises(IndexError, match="256"):
        relative.sinusoids(Tensor([relative.LIMIT]), 4, "float32")


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("T, S", [(1, 1), (1, 4), (3, 3), (3, 8)])
def test_rel_shift_brings_each_distance_to_its_key(T, S, ahead):
    d = relative.distances(T, S, ahead, 0, Tensor([0]))
    shifted = ops.rel_shift(ops.broadcast_to(ops.cast(d, "float32"), (T, d.shape[0])), S).numpy()
    want = S - T + np.arange(T)[:, None] - np.arange(S)
    np.testing.assert_array_equal(shifted, want if ahead else np.maximum(want, 0))


def test_distances_do_not_grow_beyond():
    assert relative.distances(3, 5, True, 2, Tensor([0])).numpy().tolist() == [2, 2, 2, 1, 0, -1, -2]


@pytest.mark.parametrize(
    "mem_len, reuse_len", [(None, None), (0, 0), (3, None), (100, None), (None, 2), (4, 2), (2, 9), (5, 1)]
)
@pytest.mark.parametrize("P", [None, 3])
def test_next_memory(P, mem_len, reuse_len):
    h = rng.standard_normal((2, 4, 5)).astype(np.float32)
    old = None if P is None else rng.standard_normal((2, P, 5)).astype(np.float32)
    found = relative.next_memory(
        None if P is None else Tensor(old), Tensor(h, requires_grad=True), mem_len, reuse_len
    )
    new = h[:, : reuse_len or None]
    want = new if P is None else np.concatenate([old, new], 1)
    np.testing.assert_array_equal(found.numpy(), want[:, -(mem_len or 0) :].transpose(1, 0, 2))
    assert not found.requires_grad


def test_trace_of_memories():
    program = plm.trace(
        lambda old, h: relative.next_memory(old, h, 5, 3),
        old=plm.spec("float32", "B", "P", 2), h=plm.spec("float32", "B", "T", 2),
    )  # fmt: skip
    for B, P, T in ((1, 1, 1), (2, 7, 2), (3, 3, 8)):
        old, h = rng.random((B, P, 2), np.float32), rng.random((B, T, 2), np.float32)
        want = np.concatenate([old, h[:, :3]], 1)[:, -5:].transpose(1, 0, 2)
        np.testing.assert_array_equal(program(old=old, h=h).numpy(), want)
