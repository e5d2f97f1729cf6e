import pytest
from plmcore.files import atomic_write


def test_write(tmp_path):
    path = tmp_path / "new" / "f.bin"
    with atomic_write(path) as f:
        f.write(b"abc")
        assert not path.exists()
    assert path.read_bytes() == b"abc" and [p.name for p in path.parent.iterdir()] == ["f.bin"]


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "f.bin"
    path.write_bytes(b"old")
    with pytest.raises(KeyError), atomic_write(path) as f:
        f.write(b"new")
        raise KeyError
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["f.bin"]
