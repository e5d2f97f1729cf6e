"""Fails when `import plmcore` takes more than 1.5 times `import numpy`: medians of alternating fresh
processes.
"""

import statistics
import subprocess
import sys

LIMIT, ROUNDS = 1.5, 15


def seconds(module: str) -> float:
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    return float(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    )


for module in ("numpy", "plmcore"):  # writes the byte code, fills the page cache
    seconds(module)
times = {"numpy": [], "plmcore": []}
for _ in range(ROUNDS):
    for module, found in times.items():
        found.append(seconds(module))
numpy, plmcore = (statistics.median(times[m]) for m in ("numpy", "plmcore"))
heavy = subprocess.run(
    [sys.executable, "-c", "import plmcore, sys; print(*sorted({m.partition('.')[0] for m in sys.modules}))"],
    capture_output=True,
    text=True,
    check=True,
).stdout.split()
print(
    f"import plmcore {plmcore * 1e3:.0f} ms, import numpy {numpy * 1e3:.0f} ms, ratio "
    f"{plmcore / numpy:.2f} (at most {LIMIT})"
)
if plmcore > LIMIT * numpy or "torch" in heavy:
    sys.exit(f"too slow, or too much is imported: {' '.join(heavy)}")
