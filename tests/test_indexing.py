"""x[...] against NumPy: values, gradients, views, errors."""

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor


def random_item(rng, size):
    kind = rng.integers(0, 4)
    if kind == 0 and size:
        return int(rng.integers(-size, size))
    ends = [None if rng.random() < 0.3 else int(rng.integers(-size - 2, size + 3)) for _ in range(2)]
    step = None if rng.random() < 0.4 else int(rng.choice([-3, -2, -1, 1, 2, 3]))
    return slice(ends[0], ends[1], step)


def random_key(rng, shape):
    """An index of integers, slices, None and an ellipsis, and now and then an array of integers or a mask."""
    used = int(rng.integers(0, len(shape) + 1))
    front = int(rng.integers(0, used + 1))
    axes = list(range(front)) + list(range(len(shape) - (used - front), len(shape)))
    items = [random_item(rng, shape[a]) for a in axes]
    if items and rng.random() < 0.4:
        k = int(rng.integers(0, len(items)))
        size = shape[axes[k]]
        # An integer beside an array is tested below.
        items = [slice(None) if isinstance(i, int) else i for i in items]
        if rng.random() < 0.3:
            items[k] = rng.random(size) < 0.5
        elif size:
            items[k] = rng.integers(-size, size, tuple(rng.integers(0, 4, rng.integers(0, 3)))).astype(
                rng.choice(["int64", "int32"])
            )
    if used < len(shape) and (front < used or rng.random() < 0.5):
        items.insert(front, Ellipsis)
    for _ in range(int(rng.integers(0, 2))):
        items.insert(int(rng.integers(0, len(items) + 1)), None)
    return items[0] if len(items) == 1 and rng.random() < 0.7 else tuple(items)


@pytest.mark.parametrize("seed", range(40))
def test_random_indices(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        shape = tuple(
            int(n)
            for n in rng.choice([0, 1, 2, 3, 5, 7], rng.integers(1, 5), p=[0.05, 0.15, 0.2, 0.2, 0.2, 0.2])
        )
        a = rng.standard_normal(shape)
        key = random_key(rng, shape)
        x = Tensor(a, requires_grad=True)
        want = a[key]
        got = x[key]
        np.testing.assert_array_equal(got.numpy(), want, err_msg=f"{shape} {key}")
        if got.size:
            weights = rng.standard_normal(want.shape)
            got.backward(Tensor(weights))
            grad = np.zeros(shape)
            np.add.at(grad, key, weights)
            np.testing.assert_allclose(x.grad.numpy(), grad, atol=1e-12, err_msg=f"{shape} {key}")
        keys = key if isinstance(key, tuple) else (key,)
        tensors = tuple(Tensor(k) if isinstance(k, np.ndarray) else k for k in keys)
        as_tensor = tensors if isinstance(key, tuple) else tensors[0]
        np.testing.assert_array_equal(Tensor(a)[as_tensor].numpy(), want)


def test_what_is_a_view():
    x = plm.zeros(4, 3, 2)
    for view in (
        x[1],
        x[1:3],
        x[-1, 2],
        x[0, 1:],
        x[2, 1, 0],
        x[...],
        x[:],
        x[None],
        x[None, 1:3],
        x[1][None, 1:],
    ):
        assert np.shares_memory(view.numpy(), x.numpy())
    assert not np.shares_memory(x[:, 1].numpy(), x.numpy())


def test_special_keys():
    a = np.arange(24.0).reshape(2, 3, 4)
    x = Tensor(a)
    for key in (
        True,
        False,
        np.True_,
        (),
        [],
        [1, 0],
        [[0], [1]],
        np.int64(1),
        np.array(1),
        (np.int32(-1), slice(None)),
        (slice(None), [0, -1]),
        (1, [0, 2]),
        ([1], 0),
        a > 5,
        (a > 5)[:, :, 0],
        (0, a[0] > 2),
    ):
        np.testing.assert_array_equal(x[key].numpy(), a[key], err_msg=str(key))
    np.testing.assert_array_equal(x[Tensor(1)].numpy(), a[1])
    np.testing.assert_array_equal(x[Tensor([True, False])].numpy(), a[[True, False]])
    np.testing.assert_array_equal(x[x > 5].numpy(), a[a > 5])
    np.testing.assert_array_equal(
        Tensor(np.arange(5, dtype=np.uint8))[Tensor(np.array([1, 3], np.uint8))].numpy(), [1, 3]
    )


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (2, r"index 2 is out of range for axis 0 of float64\[2, 3\]"),
        (-3, "index -3 is out of range"),
        ((0, 3), "index 3 is out of range for axis 0"),
        ((slice(None), 3), "index 3 is out of range for axis 1"),
        (2**31, "index 2147483648 is out of range"),
        (2**63 - 1, "index 9223372036854775807 is out of range"),
        (2**70, "cannot fit"),
        ((0, 0, 0), "too many indices: 3"),
        ((..., 0, ...), "one ellipsis"),
        (([0], [1]), "can have one array"),
        ([0, 2], r"index 2 at position \[1\] is out of range for an axis of size 2"),
        ([-3], r"index -3 at position \[0\]"),
        (np.array([2**63 - 1]), r"index 9223372036854775807 at position \[0\]"),
        ([0.5], "must be of integers or bool, got float32"),
        ([True, False, True], "a boolean mask must have the sizes of the axes"),
        ((0, None, [1]), "stand apart"),
    ],
)
def test_errors(key, message):
    with pytest.raises(IndexError, match=message):
        Tensor(np.zeros((2, 3)))[key]


def test_other_errors():
    x = plm.zeros(2, 3)
    with pytest.raises(ValueError, match="zero"):
        x[::0]
    for key in ("a", 1.0, object()):
        with pytest.raises(TypeError, match="an index must be"):
            x[key]
    with pytest.raises(TypeError):
        x["a":]
    with pytest.raises(IndexError, match="too many indices"):
        Tensor(1.0)[0]


def test_iteration_and_unpacking():
    x = Tensor(np.arange(300.0).reshape(150, 2), requires_grad=True)
    rows = list(x)
    assert len(rows) == len(x) == 150 and rows[7].tolist() == [14, 15]
    (rows[3].sum() * 2 + rows[149].sum()).backward()
    want = np.zeros((150, 2))
    want[3], want[149] = 2, 1
    np.testing.assert_array_equal(x.grad.numpy(), want)
    a, b = plm.zeros(2, 3)
    assert a.shape == b.shape == (3,) and list(plm.zeros(0, 3)) == []
    with pytest.raises(TypeError, match="without axes"):
        iter(Tensor(1.0))
    with pytest.raises(ValueError, match="unpack"):
        a, b = plm.zeros(3, 3)
