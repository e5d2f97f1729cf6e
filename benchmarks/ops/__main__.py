"""plmcore's ops against torch's on the CPU.

    python benchmarks/ops --threads 1 2 --rounds 7 --json ops.json
    python benchmarks/ops --only attention --threads 2

Each library runs in a process of its own, same thread count, alternating rounds; outputs are compared before anything
is timed. Printed: median times, the median ratio (torch / plmcore) with its spread, the target, the rate reached and
its share of what the machine was measured to do.
"""

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ops import limits
from ops.cases import CASES


class Side:
    def __init__(self, library: str, threads: int):
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), PLMCORE_NUM_THREADS=str(threads))
        here = Path(__file__).resolve().parent
        command = [sys.executable, str(here / "worker.py"), library, str(threads), str(here.parent)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def ask(self, *command):
        pickle.dump(command, self.process.stdin)
        self.process.stdin.flush()
        try:
            return pickle.load(self.process.stdout)
        except EOFError:
            raise SystemExit(f"a contestant ended on {command}: see its message above") from None

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def difference(a: list, b: list) -> float:
    """Largest difference of two lists of arrays, relative to the larger of 1 and the array's largest value."""
    return max(
        float(np.abs(x - y).max() / max(1.0, np.abs(y).max())) if x.size else 0.0 for x, y in zip(a, b, strict=True)
    )


def run_case(case, plm: Side, torch: Side, rounds: int, seconds: float) -> dict:
    for side in (plm, torch):
        side.ask("load", case.name)
    error = difference(plm.ask("outputs"), torch.ask("outputs")) if case.compare else float("nan")
    if error > case.tolerance:
        raise SystemExit(f"{case.name}: outputs differ by {error:.2e}, more than {case.tolerance:.0e}")
    ours, theirs = [], []
    for k in range(rounds):
        for side, times in ((plm, ours), (torch, theirs)) if k % 2 else ((torch, theirs), (plm, ours)):
            times.append(side.ask("time", seconds))
            time.sleep(0.01)
    for side in (plm, torch):
        side.ask("unload")
    ratios = [t / o for o, t in zip(ours, theirs, strict=True)]
    return {
        "case": case.name, "plmcore_ms": 1e3 * statistics.median(ours), "torch_ms": 1e3 * statistics.median(theirs),
        "ratio": statistics.median(ratios), "low": min(ratios), "high": max(ratios), "target": case.target, "error": error,
        "gflops": case.flops / statistics.median(ours) * 1e-9, "gbps": case.bytes / statistics.median(ours) * 1e-9,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks/ops", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.15, help="time per measurement")
    parser.add_argument("--json", help="write the results here")
    args = parser.parse_args()
    results = []
    for threads in args.threads:
        limit = limits.measure(threads)
        print(
            f"\n{threads} thread{'s' if threads > 1 else ''}: FMA loop {limit['gflops']:.0f} GFLOP/s, memory read {limit['gbps']:.1f} GB/s"
        )
        print(
            f"{'case':42s} {'plmcore ms':>10s} {'torch ms':>10s} {'ratio':>6s} {'low–high':>11s} {'target':>6s}   {'rate':>16s}  error"
        )
        plm, torch = Side("plmcore", threads), Side("torch", threads)
        for case in CASES.values():
            if args.only not in case.name:
                continue
            r = run_case(case, plm, torch, args.rounds, args.seconds) | {"threads": threads}
            results.append(r | {"limit_gflops": limit["gflops"], "limit_gbps": limit["gbps"]})
            rate = (
                f"{r['gflops']:.0f} GFLOP/s {r['gflops'] / limit['gflops']:4.0%}"
                if case.flops
                else f"{r['gbps']:.1f} GB/s {r['gbps'] / limit['gbps']:4.0%}"
                if case.bytes
                else ""
            )
            miss = " " if r["ratio"] >= case.target else "*"
            spread = f"{r['low']:.2f}–{r['high']:.2f}"
            print(
                f"{case.name:42s} {r['plmcore_ms']:10.3f} {r['torch_ms']:10.3f} {r['ratio']:6.2f} {spread:>11s} {case.target:6.2f}{miss}  {rate:>16s}  {r['error']:.0e}",
                flush=True,
            )
        plm.close()
        torch.close()
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
