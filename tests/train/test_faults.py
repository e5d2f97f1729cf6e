"""Runs that are killed, full disks, damaged files."""

import contextlib
import os
import pathlib
import shutil
import tempfile

import killing
import numpy as np
import pytest
from plmcore import train
from plmcore.train import checkpoint, line_file
from small import trainer

HERE = pathlib.Path(__file__).parent
STEPS, KILLS = 120, 20


def start(folder, *args):
    return killing.start(HERE / "killed_run.py", folder, STEPS, *args)


def test_a_run_killed_twenty_times_ends_with_the_same_bits(tmp_path):
    undisturbed, killed = tmp_path / "a", tmp_path / "b"
    whole = start(undisturbed)
    inside = killing.kill_often(lambda: start(killed), killed, KILLS)
    assert inside >= KILLS // 3
    process = start(killed)
    assert process.wait(120) == 0 and whole.wait(120) == 0, process.stderr.read().decode()
    with np.load(undisturbed / "done.npz") as a, np.load(killed / "done.npz") as b:
        assert all(a[name].tobytes() == b[name].tobytes() for name in a.files)
    steps = [
        [m["step"] for m in train.run_directory.read_metrics(f / "metrics.jsonl")]
        for f in (undisturbed, killed)
    ]
    assert steps[0] == steps[1] == list(range(10, STEPS + 1, 10))


def test_a_file_that_may_not_grow_leaves_the_last_checkpoint(tmp_path):
    """The limit on file sizes stands for a full disk: a write fails in the middle."""
    process = start(tmp_path, 20_000)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "File too large" in err.decode() and ".safetensors" in err.decode()
    assert [p.name for p in (tmp_path / "checkpoints").iterdir()] == ["step-00000004"]
    assert checkpoint.newest(tmp_path / "checkpoints")[0].step == 4


def test_no_space_left(tmp_path, monkeypatch):
    write = checkpoint.safetensors.write

    def full(path, *args):
        if "step-00000004" in str(path) and path.stem == "optimizer":
            raise OSError(28, "No space left on device", str(path))
        return write(path, *args)

    monkeypatch.setattr(checkpoint.safetensors, "write", full)
    with train.RunDirectory(tmp_path, quiet=True) as d:
        with pytest.raises(OSError, match="No space left on device"):
            trainer(directory=d, save_every=2).run()
        assert d.newest().step == 2 and not killing.unfinished(tmp_path)


@pytest.mark.parametrize("name", ["log.txt", "metrics.jsonl"])
def test_a_full_disk_is_told_with_the_file(tmp_path, name, monkeypatch):
    def full(path, mode, **options):
        return open("/dev/full" if path.name == name else path, mode, **options)

    monkeypatch.setattr(line_file, "open_own", full)
    with (
        train.RunDirectory(tmp_path, quiet=True) as d,
        pytest.raises(OSError, match=rf"No space left on device: '.*{name}'"),
    ):
        d.say("good morning")
        d.record({"step": 1})


@contextlib.contextmanager
def ordinary_user():
    """The superuser may write everywhere: inside, such a process counts as nobody."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def open_folder():
    """A folder below which another user finds what is there, unlike tmp_path."""
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_directory_that_may_not_be_written(open_folder):
    with train.RunDirectory(open_folder, quiet=True) as d:
        trainer(directory=d, save_every=2, steps=2).run()
        d.checkpoints.chmod(0o500)
        (open_folder / "metrics.jsonl").chmod(0o666)
        os.chown(d.checkpoints, 65534 if os.geteuid() == 0 else -1, -1)
        try:
            with ordinary_user(), pytest.raises(PermissionError):
                trainer(directory=d, save_every=2, steps=4).run()
            assert d.newest().step == 2
        finally:
            d.checkpoints.chmod(0o700)


def test_a_run_that_may_not_begin_where_it_is_told(open_folder):
    open_folder.chmod(0o555)
    try:
        with ordinary_user(), pytest.raises(PermissionError, match="run"):
            train.RunDirectory(open_folder / "run", quiet=True)
    finally:
        open_folder.chmod(0o755)


def test_every_checkpoint_damaged_is_an_error_that_names_them(tmp_path):
    with train.RunDirectory(tmp_path, quiet=True) as d:
        trainer(directory=d, save_every=2, steps=4).run()
        for path in checkpoint.steps_in(d.checkpoints):
            os.truncate(path / "optimizer.safetensors", 100)
        with pytest.raises(ValueError, match=r"(?s)no checkpoint in .* can be read: .*00000004.*00000002"):
            d.newest()
