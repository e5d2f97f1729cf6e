import pathlib
import re
import subprocess
import sys

BATCHES = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "corpus" / "batches.py"


def test_random_batches_stay_in_little_memory():
    done = subprocess.run([sys.executable, str(BATCHES), "20", "50", "2"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = re.match(r"20 MB: .* batches of 64 x 512 a second, (\d+) MB resident at most, (\d+) MB", done.stdout)
    assert found and int(found[2]) < int(found[1]) < 200
