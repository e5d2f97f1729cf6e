import numpy as np
import pytest
from plmcore.evaluate import correlation

scipy = pytest.importorskip("scipy", reason="needs the extra eval")
X, Y = [1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 10.0]  # sums of products about the means: 14, 5, 50


def test_by_hand():
    assert correlation.pearson(X, Y) == pytest.approx(13 / np.sqrt(5 * 50))
    assert correlation.spearman(X, Y) == pytest.approx(0.8)  # 1 - 6 * 2 / (4 * 15)
    assert correlation.spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(
        np.corrcoef([1, 2.5, 2.5, 4], X)[0, 1]
    )


def test_by_numpy():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 500))
    ranks = [np.argsort(np.argsort(v)) for v in (x, x + y)]
    assert correlation.pearson(x, x + y) == pytest.approx(np.corrcoef(x, x + y)[0, 1])
    assert correlation.spearman(x, x + y) == pytest.approx(np.corrcoef(*ranks)[0, 1])


def test_constant_and_bad_input():
    assert correlation.pearson([1, 1, 1], [1, 2, 3]) == 0.0 == correlation.spearman([1, 2, 3], [4, 4, 4])
    with pytest.raises(ValueError, match="at least two numbers"):
        correlation.pearson([1.0], [2.0])
    with pytest.raises(ValueError, match="must be finite"):
        correlation.spearman([1.0, np.nan], [2.0, 3.0])
