"""plmcore's ops against torch's on the CPU.

    python benchmarks/ops --threads 1 2 --rounds 7 --json ops.json
    python benchmarks/ops --only attention --threads 2

Each library runs in a process of its own, same thread count, alternating rounds; outputs are compared before anything
is timed. Printed: median times, the median ratio (torch / plmcore) with its spread, the target, the rate reached and
its share of what the machine was measured to do.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

from ops import limits
from ops.cases import CASES

WORKER = Path(__file__).with_name("worker.py")


def run_case(case, sides: dict[str, contest.Contestant], rounds: int, seconds: float) -> dict:
    plm, torch = sides["plmcore"], sides["torch"]
    for side in sides.values():
        side.ask("load", case.name)
    error = float("nan")
    if case.compare:
        error = contest.compare(case.name, plm.ask("outputs"), torch.ask("outputs"), case.tolerance)
    times = contest.alternate(("torch", "plmcore"), rounds, 0.01, lambda name: sides[name].ask("time", seconds))
    for side in sides.values():
        side.ask("unload")
    ours, theirs = times["plmcore"], times["torch"]
    return {
        "case": case.name, "plmcore_ms": 1e3 * statistics.median(ours), "torch_ms": 1e3 * statistics.median(theirs),
        **contest.ratios(ours, theirs), "target": case.target, "error": error,
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
            f"\n{contest.count_of(threads)}: FMA loop {limit['gflops']:.0f} GFLOP/s, memory read {limit['gbps']:.1f} GB/s"
        )
        print(
            f"{'case':42s} {'plmcore ms':>10s} {'torch ms':>10s} {'ratio':>6s} {'low–high':>11s} {'target':>6s}   {'rate':>16s}  error"
        )
        with contest.field(WORKER, ("plmcore", "torch"), threads) as sides:
            for case in CASES.values():
                if args.only not in case.name:
                    continue
                r = run_case(case, sides, args.rounds, args.seconds) | {"threads": threads}
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
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    try:
        main()
    except contest.ContestError as e:
        raise SystemExit(str(e)) from None
