"""DLPack both ways: NumPy and torch share memory with tensors."""

import gc

import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool"]


def equal(tensor, array):
    np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_with_numpy(dtype):
    a = (np.arange(6).reshape(2, 3) % 2).astype(dtype)
    t = plm.from_dlpack(a)
    equal(t, a)
    t.numpy()[0, 0] = 1
    assert a[0, 0] == 1
    back = np.from_dlpack(t)
    assert np.shares_memory(back, a) and back.dtype == a.dtype
    del t, a
    gc.collect()
    assert back[0, 0] == 1


def test_dlpack_layouts_and_flags():
    a = np.arange(24, dtype=np.float32).reshape(4, 6)
    for x in (a.T, a[::2, 1:], a[::-1], a[:0], np.full((), 3, np.float32)):
        equal(plm.from_dlpack(x), x)
    frozen = a.copy()
    frozen.flags.writeable = False
    if tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1):  # exports read-only arrays
        assert not plm.from_dlpack(frozen).numpy().flags.writeable
    t = plm.from_numpy(frozen)
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()
    assert t.__dlpack_device__() == (1, 0)
    capsule = Tensor([1.0]).__dlpack__()
    plm.from_dlpack(capsule)
    with pytest.raises(ValueError, match="used before"):
        plm.from_dlpack(capsule)
    with pytest.raises(TypeError, match="no __dlpack__"):
        plm.from_dlpack([1.0])
    with pytest.raises(TypeError):
        plm.from_dlpack(np.zeros(2, np.complex64))
    copied = plm.from_dlpack(t.__dlpack__(copy=True))
    copied.numpy()[0] = 5
    assert frozen[0, 0] == 0


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_dlpack_with_torch(dtype):
    torch = pytest.importorskip("torch")
    x = (torch.arange(6).reshape(2, 3) % 2).to(getattr(torch, dtype))
    t = plm.from_dlpack(x)
    assert t.dtype == dtype and t.tolist() == x.tolist()
    x[0, 0] = 1
    assert t[0, 0].item() == 1
    back = torch.from_dlpack(t)
    back[1, 1] = 0
    assert back.data_ptr() == x.data_ptr() and t[1, 1].item() == 0
    assert plm.from_dlpack(x.T).tolist() == x.T.tolist()
    y = torch.from_dlpack(Tensor([1.0, 2.0], requires_grad=True) * 2)
    gc.collect()
    assert y.tolist() == [2, 4]


@pytest.mark.oracle
def test_dlpack_of_nothing():
    """torch lends a null pointer."""
    torch = pytest.importorskip("torch")
    t = plm.from_dlpack(torch.empty(0, 4))
    assert t.tolist() == [] and (t + t).shape == (0, 4)
