"""Runs that are killed, full disks, damaged files."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from plmcore import train
from plmcore.train import checkpoint
from small import trainer

HERE = pathlib.Path(__file__).parent
STEPS, KILLS = 120, 20


def start(folder, *args):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    return subprocess.Popen(
        [sys.executable, HERE / "killed_run.py", folder, str(STEPS), *map(str, args)],
        env=environment,
        stderr=subprocess.PIPE,
    )


def until(condition, process, seconds=60.0):
    """Waits for the condition; False if the process ends first."""
    end = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            return False
        assert time.monotonic() < end, "the run hangs"
        time.sleep(0.0002)
    return True


def unfinished(folder):
    return list((folder / "checkpoints").glob(".step-*.tmp")) if (folder / "checkpoints").exists() else []


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_run_killed_twenty_times_ends_with_the_same_bits(tmp_path):
    undisturbed, killed = tmp_path / "a", tmp_path / "b"
    whole = start(undisturbed)
    rng = np.random.default_rng(0)
    inside = 0
    for i in range(KILLS):
        process = start(killed)
        if i % 2:  # while a checkpoint is being written
            assert until(lambda: unfinished(killed), process), "the run ended before it was killed often enough"
            time.sleep(rng.uniform(0, 0.004))
        else:
            alive = killed / "alive"
            alive.unlink(missing_ok=True)
            assert until(alive.exists, process)
            time.sleep(rng.uniform(0, 0.02))
        kill(process)
        inside += bool(unfinished(killed))
    assert inside >= KILLS // 3
    process = start(killed)
    assert process.wait(120) == 0 and whole.wait(120) == 0, process.stderr.read().decode()
    with np.load(undisturbed / "done.npz") as a, np.load(killed / "done.npz") as b:
        assert all(a[name].tobytes() == b[name].tobytes() for name in a.files)
    steps = [[m["step"] for m in train.run_directory.read_metrics(f / "metrics.jsonl")] for f in (undisturbed, killed)]
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
        assert d.newest().step == 2 and not unfinished(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_directory_that_may_not_be_written(tmp_path):
    with train.RunDirectory(tmp_path, quiet=True) as d:
        trainer(directory=d, save_every=2, steps=2).run()
        d.checkpoints.chmod(0o500)
        try:
            with pytest.raises(PermissionError):
                trainer(directory=d, save_every=2, steps=4).run()
            assert d.newest().step == 2
        finally:
            d.checkpoints.chmod(0o700)


def test_every_checkpoint_damaged_is_an_error_that_names_them(tmp_path):
    with train.RunDirectory(tmp_path, quiet=True) as d:
        trainer(directory=d, save_every=2, steps=4).run()
        for path in checkpoint.steps_in(d.checkpoints):
            os.truncate(path / "optimizer.safetensors", 100)
        with pytest.raises(ValueError, match=r"(?s)no checkpoint in .* can be read: .*00000004.*00000002"):
            d.newest()
