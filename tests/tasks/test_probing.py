import numpy as np
import plmcore as plm
import pytest
import samples
from plmcore.tasks import probe, probing, records


def test_ridge_regression_finds_a_plane():
    x = np.random.RandomState(0).randn(200, 5)
    y = (x[:, 1] - x[:, 3] > 0).astype(int)
    predict = probing.solve(x[:150], y[:150], 2, 1e-4)
    assert (predict(x[150:]) == y[150:]).mean() > 0.9


@pytest.mark.parametrize("family", ["bert", "xlnet", "gpt2"])
def test_words_are_known_by_every_layer(directory, tmp_path, family):
    for name, first in (("train", 0), ("test", 100)):
        (tmp_path / name).write_text(samples.tagged(60, first))
    train, test = (records.read(tmp_path / name, "tagging") for name in ("train", "test"))
    lm = plm.load(directory(family))
    found = probe(lm, train, test)
    assert len(found) == 3 and min(found) > 0.9


def test_texts(directory, table):
    lm = plm.load(directory("bert"))
    train, test = (records.read(table(n, samples.reviews(80, k)), "classification") for n, k in (("a", 0), ("b", 80)))
    assert max(probe(lm, train, test)) > 0.9
    with pytest.raises(ValueError, match="one class"):
        probe(lm, [r for r in train if r["label"] == "good"], test)
