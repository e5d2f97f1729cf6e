import numpy as np
import plmcore as plm
import pytest
from plmcore import Tensor, nn
from plmcore.models.position_buckets import PositionBias, buckets

DISTANCES = [-200, -128, -64, -33, -16, -15, -9, -8, -7, -1, 0, 1, 7, 8, 15, 16, 33, 64, 127, 200]
ENCODER = [15, 15, 14, 12, 10, 9, 8, 8, 7, 1, 0, 17, 23, 24, 25, 26, 28, 30, 31, 31]
DECODER = [31, 31, 26, 21, 16, 15, 9, 8, 7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("both_ways, expected", [(True, ENCODER), (False, DECODER)])
def test_buckets(both_ways, expected):
    assert buckets(Tensor(np.array(DISTANCES, np.float32)), 32, 128, both_ways).numpy().tolist() == expected


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("T, S", [(1, 1), (4, 4), (1, 9), (3, 40), (40, 40)])
def test_bias_of_each_distance(causal, T, S):
    bias = PositionBias(8, 20, 3, causal, nn.init.normal(1.0))
    got = bias(T, S).numpy()
    queries, keys = np.arange(S - T, S), np.arange(S)
    distance = (keys[None] - queries[:, None]).astype(np.float32)
    expected = bias.table.weight.numpy()[buckets(Tensor(distance), 8, 20, not causal).numpy()]  # [T, S, H]
    np.testing.assert_array_equal(got, expected.transpose(2, 0, 1)[None])


def test_gradient_counts_the_pairs_in_each_bucket():
    bias = PositionBias(8, 20, 2, False, nn.init.normal(1.0))
    bias(5, 5).sum().backward()
    distance = (np.arange(5)[None] - np.arange(5)[:, None]).astype(np.float32)
    counts = np.bincount(buckets(Tensor(distance), 8, 20, True).numpy().ravel(), minlength=8)
    np.testing.assert_array_equal(bias.table.weight.grad.numpy(), np.stack([counts, counts], 1))


def test_traces_at_any_length():
    bias = PositionBias(8, 20, 2, True, nn.init.normal(1.0))
    program = plm.trace(
        lambda q, k: bias(q.shape[0], k.shape[0]), q=plm.spec("float32", "T"), k=plm.spec("float32", "S")
    )
    for T, S in ((1, 1), (2, 31), (7, 7)):
        got = program(q=np.zeros(T, np.float32), k=np.zeros(S, np.float32))
        np.testing.assert_array_equal(got.numpy(), bias(T, S).numpy())
