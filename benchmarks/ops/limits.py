"""What this machine can do at most: float32 FMA rate and memory read rate, by number of threads."""

import ctypes
import subprocess
import tempfile
import threading
from pathlib import Path


def measure(threads: int) -> dict[str, float]:
    """GFLOP/s and GB/s summed over `threads` threads that run at once."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "limits.so"
        source = Path(__file__).with_name("limits.c")
        subprocess.run(
            ["cc", "-O3", "-march=native", "-w", "-shared", "-fPIC", str(source), "-o", str(library)],
            check=True,
        )
        native = ctypes.CDLL(str(library))
        native.fma_rate.restype = native.read_rate.restype = ctypes.c_double
        native.read_rate.argtypes = [ctypes.c_size_t]
        return {
            "gflops": together(threads, native.fma_rate),
            "gbps": together(threads, lambda: native.read_rate(256 << 20)),
        }


def together(threads: int, call) -> float:
    results = [0.0] * threads

    def work(i: int) -> None:
        results[i] = call()

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return sum(results)
