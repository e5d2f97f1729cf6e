"""GloVe against its formulas, against what the Stanford program computed, and on planted counts."""

import os
import pathlib

import numpy as np
import plmcore as plm
import pytest
from plmcore.vectors.records import RECORD

DATA = pathlib.Path(os.environ.get("PLM_DATA", pathlib.Path(__file__).parents[2].parent / "shared" / "data"))
GOLDEN = DATA / "golden-glove"


def plain(records, init, epochs, x_max, alpha, rate):
    """The program's loop, over NumPy's rows."""
    w, squares, losses = init.copy(), np.ones_like(init), []
    dim = init.shape[-1] - 1
    for _ in range(epochs):
        cost = 0.0
        for i, j, x in records.tolist():
            a, b = w[0, i - 1], w[1, j - 1]
            ga, gb = squares[0, i - 1], squares[1, j - 1]
            d = a[:dim] @ b[:dim] + a[dim] + b[dim] - np.log(x)
            f = d if x > x_max else (x / x_max) ** alpha * d
            cost += 0.5 * f * d
            u, v = (np.clip(f * other[:dim], -100, 100) * rate for other in (b, a))
            a[:dim] -= u / np.sqrt(ga[:dim])
            b[:dim] -= v / np.sqrt(gb[:dim])
            ga[:dim] += u * u
            gb[:dim] += v * v
            for bias, g in ((a, ga), (b, gb)):
                bias[dim] -= f / np.sqrt(g[dim])
                g[dim] += f * f
        losses.append(cost / len(records))
    return w, losses


def drawn(words, n, seed=0):
    rng = np.random.default_rng(seed)
    records = np.zeros(n, RECORD)
    records["row"], records["column"] = rng.integers(1, words + 1, (2, n))
    records["value"] = rng.exponential(30, n) + 0.1
    return records


@pytest.mark.parametrize(("dim", "alpha"), [(1, 0.75), (8, 0.75), (13, 0.6)])
def test_formulas(dim, alpha):
    records = drawn(9, 200)
    init = np.random.default_rng(1).normal(size=(2, 9, dim + 1))
    words = [f"w{i}" for i in range(9)]
    v = plm.vectors.glove(
        records=records, words=words, dim=dim, x_max=40, alpha=alpha, lr=0.1, epochs=2, init=init,
        shuffle=False, threads=1,
    )  # fmt: skip
    want, losses = plain(records, init, 2, 40, alpha, 0.1)
    np.testing.assert_allclose(v.parameters, want, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(v.losses, losses, rtol=1e-12)
    np.testing.assert_allclose(v.matrix, want[:, :, :dim].sum(0), rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"no data folder '{GOLDEN}' (PLM_DATA)")
def test_stanford_program(tmp_path):
    words = [line.split()[0] for line in (GOLDEN / "vocab.txt").read_text().splitlines()]
    text = (DATA / "tinyshakespeare" / "input.txt").read_text().split("\n")[10000:13000]
    (tmp_path / "text").write_text("\n".join(text) + "\n")
    found = plm.vectors.cooccurrences(tmp_path / "text", tmp_path / "out", min_count=4, window=8)
    ours, theirs = (np.fromfile(p, RECORD) for p in (found.path, GOLDEN / "cooc.bin"))
    assert found.words == words and np.array_equal(ours[["row", "column"]], theirs[["row", "column"]])
    assert np.abs(ours["value"] - theirs["value"]).max() <= 1e-9
    stored = np.load(GOLDEN / "parameters.npz")
    v = plm.vectors.glove(
        records=GOLDEN / "shuf.bin", words=words, dim=16, x_max=20.0, epochs=3, init=stored["init"],
        shuffle=False, threads=1,
    )  # fmt: skip
    assert np.abs(v.parameters - stored["after3"]).max() <= 1e-9
    np.testing.assert_allclose(v.losses, [0.045092, 0.036315, 0.034147], atol=1e-6)
    published = plm.load_vectors(GOLDEN / "vectors.txt")
    assert published.words == [*words, "<unk>"] and np.abs(published.matrix[:-1] - v.matrix).max() < 1e-6


def test_planted_counts():
    """Products and biases give back the logarithms."""
    rng = np.random.default_rng(0)
    u, c = rng.normal(0, 0.6, (2, 40, 4))
    logs = u @ c.T + 2
    records = np.zeros(1600, RECORD)
    records["row"], records["column"] = (np.indices((40, 40)) + 1).reshape(2, -1)
    records["value"] = np.exp(logs).ravel()
    words = [f"w{i}" for i in range(40)]
    v = plm.vectors.glove(records=records, words=words, dim=8, x_max=1.0, lr=0.1, epochs=200, threads=2)
    assert v.losses[-1] < v.losses[0] / 100
    w, b = v.parameters[:, :, :8], v.parameters[:, :, 8]
    rest = (w[0] @ w[1].T + b[0][:, None] + b[1]) - logs
    assert 1 - rest.var() / logs.var() > 0.99


def test_text(tmp_path):
    (tmp_path / "t.txt").write_text("one two three four\ntwo three one\n" * 20)
    v = plm.vectors.glove(tmp_path / "t.txt", dim=5, epochs=3, threads=1)
    assert set(v.words) == {"one", "two", "three", "four"} and v.matrix.shape == (4, 5) and len(v.losses) == 3
    assert v.counts.tolist() == [40, 40, 40, 20] and v.parameters.shape == (2, 4, 6)


def test_wrong(tmp_path):
    records, words = drawn(4, 20), list("abcd")
    for options, kind, message in (
        ({}, ValueError, "either text or records"),
        ({"records": records}, ValueError, "need their words"),
        ({"records": records, "words": words[:3]}, plm.FormatError, "must be 1 to 3"),
        ({"records": records, "words": ["a"]}, ValueError, "nothing to learn"),
        ({"records": records[:0], "words": words}, ValueError, "nothing to learn"),
        ({"records": np.zeros(3), "words": words}, plm.FormatError, "an array of"),
        ({"records": records, "words": words, "dim": 0}, ValueError, "dim and epochs"),
        ({"records": records, "words": words, "init": np.zeros((2, 4, 3))}, ValueError, "init must be"),
    ):
        with pytest.raises(kind, match=message):
            plm.vectors.glove(**options)
    for value in (0.0, -1.0, np.nan):
        wrong = records.copy()
        wrong["value"][7] = value
        with pytest.raises(plm.FormatError, match="must be a number above 0"):
            plm.vectors.glove(records=wrong, words=words)
    (tmp_path / "r").write_bytes(records.tobytes()[:-3])
    with pytest.raises(plm.FormatError, match="cut off"):
        plm.vectors.glove(records=tmp_path / "r", words=words)
