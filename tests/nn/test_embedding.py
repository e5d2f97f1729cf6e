import numpy as np
import pytest
from plmcore import Tensor, nn, ops

ids = np.array([[1, 0, 1], [3, 0, 2]])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("padding_idx", [None, 0])
def test_value_and_gradient(sparse, padding_idx):
    emb = nn.Embedding(5, 4, padding_idx=padding_idx, sparse=sparse)
    if padding_idx is not None:
        assert not emb.weight.numpy()[0].any()
    emb.weight.numpy()[0] = 3.0  # as loaded from a checkpoint
    y = emb(Tensor(ids))
    assert y.numpy().tolist() == emb.weight.numpy()[ids].tolist()
    ops.sum_to(y, ()).backward()
    g = emb.weight.grad
    assert g.is_row_sparse == sparse
    dense = np.zeros((5, 4))
    if sparse:
        dense[g.rows.numpy()] = g.values.numpy()
    else:
        dense = g.numpy()
    assert dense[:, 0].tolist() == [2 if padding_idx is None else 0, 2, 1, 1, 0]


def test_errors():
    with pytest.raises(ValueError, match="padding_idx must be from 0 to 4, got 5"):
        nn.Embedding(5, 4, padding_idx=5)
    with pytest.raises(IndexError):
        nn.Embedding(5, 4)(Tensor(np.array([5])))


def test_shared_weight():
    one = nn.Embedding(5, 4)
    other = nn.Embedding(5, 4, weight=one.weight)
    assert other.weight is one.weight
    with pytest.raises(ValueError, match=r"the shared weight must be \[5, 3\], got \[5, 4\]"):
        nn.Embedding(5, 3, weight=one.weight)
