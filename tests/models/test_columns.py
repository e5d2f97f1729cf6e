"""Rows to columns and back, for every padding; against NumPy."""

import numpy as np
import plmcore as plm
import pytest
from plmcore.models import padding
from plmcore.models.columns import Columns

T, C = 5, 3
X = np.random.default_rng(0).standard_normal((4, T, C)).astype(np.float32)
MASKS = {
    "none": None,
    "right": [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 0, 0]],
    "left": [[1, 1, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1], [0, 1, 1, 1, 1]],
    "empty": [[1, 1, 1, 1, 1], [0, 0, 0, 0, 0], [0, 0, 1, 1, 0], [0, 1, 0, 1, 1]],
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", MASKS)
def test_against_lists(name, reverse):
    mask = MASKS[name]
    seen = np.ones((4, T), bool) if mask is None else np.array(mask, bool)
    layout = padding.layout(
        plm.Tensor(np.ones((4, T), np.int64)), None if mask is None else plm.Tensor(np.array(mask))
    )
    columns = Columns(layout, reverse)
    rows = layout.pack(plm.Tensor(X))
    found = columns.of(rows)
    expected, last = np.zeros_like(X), np.zeros((4, C), np.float32)
    for b in range(4):
        text = X[b, seen[b]][:: -1 if reverse else 1]
        expected[b, : len(text)] = text
        last[b] = text[-1] if len(text) else 0
    np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(columns.rows(found).numpy(), rows.numpy())
    np.testing.assert_array_equal(columns.last(found).numpy(), last)
    np.testing.assert_array_equal(columns.of_lengths().numpy(), seen.sum(1))
