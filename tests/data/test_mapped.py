import numpy as np
import pytest
from plmcore.data import mapped


def test_array(tmp_path):
    np.arange(5, dtype=np.uint32).tofile(tmp_path / "f")
    found = mapped.array(tmp_path / "f", np.dtype("<u4"))
    assert found.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1
    (tmp_path / "empty").touch()
    assert len(mapped.array(tmp_path / "empty", np.dtype("<u4"))) == 0


def test_trim_gives_pages_back_and_they_read_the_same(tmp_path, monkeypatch):
    values = np.random.default_rng(0).integers(0, 2**16, 16 << 20, np.uint16)
    values.tofile(tmp_path / "f")
    found = mapped.array(tmp_path / "f", np.dtype("<u2"))
    before = mapped.resident()
    total = int(found.sum())
    assert mapped.resident() > before + (30 << 20)
    mapped.trim()
    assert mapped.resident() > before + (30 << 20)  # 32 MB are allowed
    monkeypatch.setattr(mapped, "RESIDENT", 8 << 20)
    monkeypatch.setattr(mapped, "_floor", before)
    mapped.trim()
    assert mapped.resident() < before + (8 << 20)
    assert int(found.sum()) == total == int(values.sum())
