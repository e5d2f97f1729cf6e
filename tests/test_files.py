import pytest
from plmcore.files import atomic_directory, atomic_write, named


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


def test_a_full_disk_is_told_with_the_file(tmp_path):
    path = tmp_path / "f.bin"
    with pytest.raises(OSError, match=r"No space left on device: '.*f\.bin'"):
        with named(path), open("/dev/full", "wb") as f:
            f.write(b"abc")
    with pytest.raises(FileNotFoundError, match=r"nowhere'$"), named(path):
        open(tmp_path / "nowhere")
    with pytest.raises(OSError, match="^somebody else is there$"), named(path):
        raise BlockingIOError("somebody else is there")


def test_a_directory_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "new" / "d"
    for content in ("one", "two"):  # the second takes the place of the first
        with atomic_directory(path) as folder:
            (folder / "f").write_text(content)
            assert folder != path and (not path.exists() or (path / "f").read_text() == "one")
        assert (path / "f").read_text() == content and [p.name for p in path.parent.iterdir()] == ["d"]


def test_an_error_leaves_the_old_directory(tmp_path):
    (tmp_path / "d").mkdir()
    with pytest.raises(KeyError), atomic_directory(tmp_path / "d") as folder:
        (folder / "f").write_text("new")
        raise KeyError
    assert list((tmp_path / "d").iterdir()) == [] and [p.name for p in tmp_path.iterdir()] == ["d"]
