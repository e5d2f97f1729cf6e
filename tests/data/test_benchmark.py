import json
import pathlib
import subprocess
import sys

BATCHES = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "corpus" / "batches.py"


def test_random_batches_stay_in_little_memory():
    done = subprocess.run([sys.executable, str(BATCHES), "20", "50", "2"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["megabytes"] == 20 and found["rate"] > 0 and 0 < found["before"] < found["resident"] < 200
