"""plmcore's ops against torch's on the CPU.

    python benchmarks/ops --threads 2 1 --json ops.json --write
    python benchmarks/ops --only attention --threads 2
    python benchmarks/ops --declared        # the `bench` of the op declarations in tests/ops, without targets
    python benchmarks/ops --from ops.json --write

Each library runs in a process of its own, same thread count, alternating rounds; outputs are compared before
anything is timed. A case whose target lies between low and high gets more rounds. Printed: median times, the
median ratio (torch / plmcore) with its spread, the target, the rate reached and its share of what the machine
was measured to do.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

from ops import declared, limits, table
from ops.cases import CASES

WORKER = Path(__file__).with_name("worker.py")
README = Path(__file__).resolve().parents[1] / "README.md"


def run_case(case, sides: dict[str, contest.Contestant], rounds: int, seconds: float) -> dict:
    plm, torch = sides["plmcore"], sides["torch"]
    for side in sides.values():
        side.ask("load", case.name)
    error = None
    if case.compare:
        error = contest.compare(case.name, plm.ask("outputs"), torch.ask("outputs"), case.tolerance)
    tied = lambda t: contest.verdict(contest.ratios(t["plmcore"], t["torch"]), case.target) == contest.TIE
    times = contest.alternate(
        ("torch", "plmcore"), rounds, 0.01, lambda name: sides[name].ask("time", seconds), undecided=tied
    )
    for side in sides.values():
        side.ask("unload")
    ours, theirs = times["plmcore"], times["torch"]
    return {
        "case": case.name,
        "plmcore_ms": 1e3 * statistics.median(ours),
        "torch_ms": 1e3 * statistics.median(theirs),
        **contest.ratios(ours, theirs),
        "target": case.target,
        "share": case.share,
        "error": error,
        "gflops": case.flops / statistics.median(ours) * 1e-9,
        "gbps": case.bytes / statistics.median(ours) * 1e-9,
    }


def measure(args) -> tuple[dict, list[str]]:
    """A run, and what failed in it."""
    failed = []
    more = f"up to {args.rounds * contest.MORE} for a tie"
    run = {
        "machine": contest.machine_line(("plmcore", "torch", "numpy")),
        "settings": f"{args.rounds} rounds of {args.seconds:g} s, {more}",
        "results": [],
    }
    print(run["machine"], flush=True)
    cases = declared.cases() if args.declared else CASES
    for threads in args.threads:
        limit = {f"limit_{name}": value for name, value in limits.measure(threads).items()}
        print(f"\n{table.top({'threads': threads, **limit})}")
        with contest.field(WORKER, ("plmcore", "torch"), threads) as sides:
            for case in cases.values():
                if args.only not in case.name:
                    continue
                try:
                    result = run_case(case, sides, args.rounds, args.seconds) | {"threads": threads, **limit}
                except contest.ContestError as e:
                    failed.append(f"{case.name}, {contest.count_of(threads)}: {e}")
                    print(f"FAILED {failed[-1]}", flush=True)
                    continue
                run["results"].append(result)
                print(table.line(table.cells(result)), flush=True)
                if args.json:
                    Path(args.json).write_text(json.dumps(run, indent=1))
    return run, failed


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks/ops", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--declared",
        action="store_true",
        help="the benchmark entries of tests/ops instead of the project's targets",
    )
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.15, help="time per measurement")
    parser.add_argument("--json", help="write the results here, after each case")
    parser.add_argument("--write", action="store_true", help="write the tables to benchmarks/README.md")
    parser.add_argument("--from", dest="earlier", metavar="JSON", help="show earlier results, run nothing")
    args = parser.parse_args()
    if args.earlier:
        run, failed = json.loads(Path(args.earlier).read_text()), []
        print(table.markdown(run))
    else:
        run, failed = measure(args)
        print(f"\n{table.summary(run['results'])}, {len(failed)} failed")
    if failed:
        raise SystemExit("\n".join(failed))
    if args.write:
        table.publish(README, run)


if __name__ == "__main__":
    main()
