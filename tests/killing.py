"""Runs that do not end by themselves: stopped after a step, or in processes of their own killed, at random
and inside a save, and started again.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np


class Stop(Exception):
    pass


def stop_at(step):
    """A callback that breaks the run off after this step."""

    def callback(trainer, metrics):
        if trainer.step == step:
            raise Stop

    return callback


def start(script: pathlib.Path, *args):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(script.parent), *sys.path])}
    return subprocess.Popen(
        [sys.executable, script, *map(str, args)], env=environment, stderr=subprocess.PIPE
    )


def until(condition, process, seconds=120.0):
    """Waits for the condition; False if the process ends first."""
    end = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            return False
        assert time.monotonic() < end, "the run hangs"
        time.sleep(0.0002)
    return True


def unfinished(folder: pathlib.Path):
    """Checkpoints that are being written, or were when the run was killed."""
    return list((folder / "checkpoints").glob(".step-*.tmp")) if (folder / "checkpoints").exists() else []


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.communicate()


def kill_often(begin, folder: pathlib.Path, kills: int, seed=0) -> int:
    """Begins the run so many times and kills it, every other time inside a save; how many left an unfinished
    one behind.

    The run must touch folder/alive after each step.
    """
    rng, inside = np.random.default_rng(seed), 0
    for i in range(kills):
        process = begin()
        if i % 2:
            assert until(lambda: unfinished(folder), process), (
                "the run ended before it was killed often enough"
            )
            time.sleep(rng.uniform(0, 0.004))
        else:
            alive = folder / "alive"
            alive.unlink(missing_ok=True)
            assert until(alive.exists, process), process.stderr.read().decode()
            time.sleep(rng.uniform(0, 0.02))
        kill(process)
        inside += bool(unfinished(folder))
    return inside
