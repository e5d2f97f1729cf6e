"""A short run of fuzz_directories.py; .ci/nightly has ten minutes of it."""

import pathlib
import subprocess
import sys

import pytest

FUZZ = pathlib.Path(__file__).parent / "fuzz_directories.py"
CASES = {"config": 25, "tokenizer": 60, "index": 100, "run": 12, "settings": 40}


@pytest.mark.parametrize(("subject", "count"), CASES.items(), ids=CASES)
def test_a_short_run(subject, count):
    command = [sys.executable, FUZZ, "--seed", "1", "--subject", subject, "--count", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
