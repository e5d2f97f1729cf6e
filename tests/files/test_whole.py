import subprocess
import sys
import threading
import time

import pytest
from plmcore.files.whole import atomic_directory, atomic_write, named, only_writer


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


def in_threads(count, work):
    """work(k) in as many threads at once; what they raised."""
    raised, start = [], threading.Barrier(count)

    def body(k):
        try:
            start.wait()
            work(k)
        except BaseException as e:
            raised.append(e)

    threads = [threading.Thread(target=body, args=(k,)) for k in range(count)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return raised


def test_threads_write_one_file(tmp_path):
    path = tmp_path / "f.bin"

    def write(k):
        for _ in range(20):
            with atomic_write(path) as f:
                for _ in range(10):
                    f.write(bytes([65 + k]) * 1000)
            found = path.read_bytes()
            assert len(found) == 10_000 and len(set(found)) == 1

    assert in_threads(4, write) == [] and [p.name for p in tmp_path.iterdir()] == ["f.bin"]


def test_threads_make_one_directory(tmp_path):
    path = tmp_path / "d"

    def make(k):
        for _ in range(20):
            with atomic_directory(path) as folder:
                for name in "abc":
                    (folder / name).write_text(str(k))

    assert in_threads(4, make) == [] and [p.name for p in tmp_path.iterdir()] == ["d"]
    assert len({(path / name).read_text() for name in "abc"}) == 1


def test_what_a_killed_process_left_is_removed_and_what_another_makes_is_not(tmp_path):
    path, ready = tmp_path / "d", tmp_path / "ready"
    code = f"""
import pathlib, time
from plmcore.files.whole import atomic_directory
with atomic_directory({str(path)!r}) as folder:
    (folder / "f").write_text("half")
    pathlib.Path({str(ready)!r}).touch()
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        try:
            while not ready.exists():
                assert process.poll() is None
                time.sleep(0.01)
            (other,) = tmp_path.glob(".d.*.tmp")
            with atomic_directory(path) as folder:
                (folder / "f").write_text("whole")
            assert (other / "f").read_text() == "half" and (path / "f").read_text() == "whole"
        finally:
            process.kill()
    with atomic_directory(path):
        assert not other.exists()


def test_one_writer_of_a_directory_at_a_time(tmp_path):
    inside = []

    def write(k):
        for _ in range(10):
            with only_writer(tmp_path / "d"), only_writer(tmp_path / "d"):  # the same thread may ask again
                inside.append(k)
                time.sleep(0.001)
                assert inside.pop() == k and not inside

    assert in_threads(4, write) == []
    with atomic_directory(tmp_path / "d") as folder, only_writer(folder):
        pass
