import tracemalloc

import numpy as np
import plmcore as plm
import pytest
import samples
from plmcore.tasks import probe, probing, records


def whole(x, y, classes, ridge):
    """The same regression from all states at once."""
    mean, spread = x.mean(0), x.std(0) + 1e-8
    z, targets = (x - mean) / spread, np.eye(classes)[y]
    bias = targets.mean(0)
    weights = np.linalg.solve(z.T @ z + ridge * len(z) * np.eye(z.shape[1]), z.T @ (targets - bias))
    return lambda states: (states - mean) / spread @ weights + bias


@pytest.mark.parametrize("far", [0.0, 1e4])
def test_sums_are_ridge_regression(far):
    """In pieces, also for states far from 0."""
    x = np.random.RandomState(0).randn(200, 5) + far
    y = (x[:, 1] - x[:, 3] > 0).astype(int) + (x[:, 2] > far + 1)
    sums = probing.Sums(x[:7].mean(0), 3)
    for start in range(0, 150, 7):
        sums.add(x[start : min(start + 7, 150)], y[start : min(start + 7, 150)])
    predicted = sums.solve(1e-4)(x[150:])
    scores = whole(x[:150], y[:150], 3, 1e-4)(x[150:])
    assert np.array_equal(predicted, scores.argmax(1)) and (predicted == y[150:]).mean() > 0.7
    assert sums.xx.shape == (5, 5) and sums.xy.shape == (5, 3)


def test_memory_does_not_grow_with_the_records(directory, tmp_path):
    (tmp_path / "some").write_text(samples.tagged(40))
    some = records.read(tmp_path / "some", "tagging")
    lm = plm.load(directory("bert"))

    def peak(n):
        many = [some[i % len(some)] for i in range(n)]
        tracemalloc.start()
        probe(lm, many, some, batch=8)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(8)  # what is made once
    assert peak(8 * probing.CHUNK * 4) < 1.3 * peak(8 * probing.CHUNK)


def test_a_control_task_has_nothing_to_know(directory, tmp_path):
    """Words whose classes are random, though the same in both parts: embeddings tell a word and so learn them
    by heart, and classes are as frequent as before.
    """
    for name, first in (("train", 0), ("test", 100)):
        (tmp_path / name).write_text(samples.tagged(60, first))
    train, test = (records.read(tmp_path / name, "tagging") for name in ("train", "test"))
    lm = plm.load(directory("bert"))
    found = probe(lm, train, test, control=True)
    assert found == probe(lm, train, test, control=True) and min(found) > 0.9
    texts = [
        {"text": f"a text about {word}", "label": str(i % 2)} for i, word in enumerate("abcdefghijklmnop" * 4)
    ]
    unseen = [
        {"text": f"another one on {word}", "label": str(i % 2)}
        for i, word in enumerate("abcdefghijklmnop" * 4)
    ]
    assert (
        max(probe(lm, texts, unseen, control=True)) < 0.9
    )  # nothing about one text tells the class of another


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
    train, test = (
        records.read(table(n, samples.reviews(80, k)), "classification") for n, k in (("a", 0), ("b", 80))
    )
    assert max(probe(lm, train, test)) > 0.9
    with pytest.raises(ValueError, match="one class"):
        probe(lm, [r for r in train if r["label"] == "good"], test)
