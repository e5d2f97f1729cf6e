"""Counting pairs, in memory and merged from runs, against a plain loop, and shuffling."""

import collections

import numpy as np
import plmcore as plm
import pytest
from plmcore import _core
from plmcore.vectors.records import RECORD, opened, shuffled


def plain(lines, window, symmetric):
    found = collections.Counter()
    for line in lines:
        for i, word in enumerate(line):
            for d in range(1, min(window, i) + 1):
                found[line[i - d], word] += 1 / d
                if symmetric:
                    found[word, line[i - d]] += 1 / d
    return found


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("memory", [100, 100_000, 1 << 24])
def test_counts(tmp_path, symmetric, memory):
    rng = np.random.default_rng(0)
    lines = [rng.integers(1, 300, rng.integers(0, 60)).tolist() for _ in range(300)]
    counter = _core.vectors.Cooccurrences(str(tmp_path), 300, 7, symmetric, memory)
    ids = np.array([x for line in lines for x in [*line, 0]], np.int32)
    for piece in np.array_split(ids, 13):
        counter.add(piece)
    n = counter.write(str(tmp_path / "out"))
    assert (counter.runs > 2) == (memory < 1 << 24)
    records = opened(tmp_path / "out")
    want = plain(lines, 7, symmetric)
    assert n == len(records) == len(want)
    assert [tuple(r) for r in records[["row", "column"]].tolist()] == sorted(want)
    np.testing.assert_allclose(records["value"], [want[key] for key in sorted(want)], rtol=1e-12)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]  # runs leave nothing


def test_text(tmp_path):
    (tmp_path / "t.txt").write_text("b a b\r\nrare a a\nb b")
    found = plm.vectors.cooccurrences(tmp_path / "t.txt", tmp_path / "new" / "out", min_count=2, window=2)
    assert found.words == ["b", "a"] and list(found.counts) == [4, 3] and len(found) == 4
    assert opened(found.path).tolist() == [(1, 1, 3.0), (1, 2, 2.0), (2, 1, 2.0), (2, 2, 2.0)]


def test_wrong(tmp_path):
    (tmp_path / "t.txt").write_text("a b a b\n")
    for options in ({"window": 0}, {"memory_mb": 1}):
        with pytest.raises(plm.ArgumentError, match="window must be at least 1 and memory_mb"):
            plm.vectors.cooccurrences(tmp_path / "t.txt", tmp_path / "o", min_count=1, **options)
    (tmp_path / "r").write_bytes(bytes(17))
    with pytest.raises(plm.FormatError, match="it is cut off"):
        opened(tmp_path / "r")


def test_shuffled(tmp_path, monkeypatch):
    monkeypatch.setattr("plmcore.vectors.records._BUCKET", 100)
    records = np.zeros(1050, RECORD)
    records["row"] = np.arange(1050)
    once, again, other = (shuffled(records, tmp_path / str(i), s)["row"] for i, s in enumerate((0, 0, 1)))
    assert np.array_equal(np.sort(once), np.arange(1050)) and np.array_equal(once, again)
    assert not np.array_equal(once, other) and abs(np.corrcoef(once, np.arange(1050))[0, 1]) < 0.15
