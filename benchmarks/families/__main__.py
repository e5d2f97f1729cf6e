"""Transformer-XL, the adaptive softmax, GLM and MASS against their peers on the CPU, with random weights.

    PLM_TRANSFORMERS_4=DIR python benchmarks/families --threads 2 1 --json families.json --write
    python benchmarks/families --only softmax --threads 2
    python benchmarks/families --from families.json --write

DIR has transformers 4.35.2, the last release whose Transformer-XL runs:

    pip install --no-deps --target DIR transformers==4.35.2 'tokenizers<0.19' 'huggingface_hub<1'

Each contestant runs in a process of its own, same thread count, in alternating rounds with a pause; outputs
are compared before anything is timed. Steps are timed in fresh processes, whose peak memory is reported.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

from families import table
from families.cases import CASES, FULL, OTHERS, TORCH, XL, Case

HERE = Path(__file__).resolve().parent
WORKER, README = HERE / "worker.py", HERE.parent / "README.md"


def absent() -> list[str]:
    """The peers that cannot run."""
    found = [] if importlib.util.find_spec("torch") else [TORCH, FULL, XL]
    return found if os.environ.get("PLM_TRANSFORMERS_4") else [*found, XL]


def written(folder: Path) -> None:
    """The models, in a process of its own."""
    subprocess.run([sys.executable, str(HERE / "write.py"), str(folder)], check=True)


def run_case(case: Case, folder: Path, threads: int, args) -> dict:
    peers = [p for p in case.targets if p not in args.absent]
    clock = args.clock if threads == 1 else "wall"
    names, same, errors = ["plmcore", *peers], [p for p in peers if p not in OTHERS], []
    if same:
        with contest.field(WORKER, ["plmcore", *same], threads) as sides:
            for side in sides.values():
                side.ask("load", case.name, folder)
            outputs = {name: side.ask("outputs") for name, side in sides.items()}
        for peer in same:
            both = outputs["plmcore"], outputs[peer]
            errors.append(contest.compare(case.name, *both, case.tolerance, ("plmcore", peer)))
    with contest.field(WORKER, names, threads) as sides:
        for side in sides.values():
            side.ask("load", case.name, folder)
            side.ask("time", 0.0, clock)  # the first call allocates
        tied = lambda times: any(
            contest.verdict(contest.ratios(times["plmcore"], times[p]), case.targets[p]) == contest.TIE
            for p in peers
        )
        timed = lambda name: sides[name].ask("time", args.seconds, clock)
        times = contest.alternate(names, args.rounds, args.pause, timed, args.limit, tied)
        memory = {name: side.ask("memory") for name, side in sides.items()}
    return {
        "case": case.name,
        "threads": threads,
        "error": max(errors, default=None),
        "clock": clock,
        "times": times,
        "memory": memory,
        "targets": case.targets,
        "memory_target": case.memory,
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/families", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], help="cases whose name contains one of these")
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a case before its last round")
    parser.add_argument("--seconds", type=float, default=0.5, help="time of one measurement")
    parser.add_argument(
        "--clock",
        choices=("wall", "processor"),
        default="wall",
        help="of one thread: the processor's time says the same on a busy machine",
    )
    parser.add_argument("--pause", type=float, default=0.4, help="seconds between contestants")
    parser.add_argument("--folder", type=Path, help="keep the models here")
    parser.add_argument("--json", type=Path, help="write the results here, after each case")
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/README.md")
    parser.add_argument("--from", nargs="+", type=Path, dest="runs", help="show earlier results, run nothing")
    args = parser.parse_args()
    args.absent = absent()
    return args


def measure(args) -> dict:
    run = {"machine": contest.machine_line(("plmcore", "torch", "numpy")), "results": []}
    print(run["machine"], flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        written(folder)
        for threads in args.threads:
            for case in CASES.values():
                if args.only and not any(text.lower() in case.name.lower() for text in args.only):
                    continue
                run["results"].append(run_case(case, folder, threads, args))
                for cells in table.cells(run["results"][-1]):
                    print(f"{contest.count_of(threads)}: {' | '.join(cells)}", flush=True)
                if args.json:
                    args.json.write_text(json.dumps(run, indent=1))
    return run


def main() -> int:
    args = arguments()
    run = table.merged([json.loads(p.read_text()) for p in args.runs]) if args.runs else measure(args)
    if args.write:
        contest.write_between(README, table.BEGIN, table.END, table.markdown(run))
    missed = table.missed(run["results"])
    for what in missed:
        print(f"missed: {what}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
