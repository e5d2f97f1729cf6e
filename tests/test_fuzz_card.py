"""A short run of fuzz_card.py."""

import pathlib
import subprocess
import sys

FUZZ = pathlib.Path(__file__).parent / "fuzz_card.py"


def test_a_short_run():
    command = [sys.executable, FUZZ, "--seed", "2", "--count", "300"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
