"""Pre-training end to end, data included:

`plmcore pretrain` beside a plain loop of torch and transformers, tokens per second.

    python benchmarks/train --threads 2 --json train.json --write
    python benchmarks/train --only GPT-2 --layers 1        # a quick look, no measurement
    python benchmarks/train --from train.json --write

Each library runs in a process of its own, same thread count, in alternating rounds with a pause. Beside that:
the share of a step that is the loop's own, and how long the first checkpoint and a later one stop the
training.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

from train import table
from train.cases import CASES, Case, write_text

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
PEER = ("torch", "transformers")


def corpus_ids(folder: Path, case: Case) -> None:
    """The corpus that plmcore's run has written, for the other side."""
    from plmcore.data import Corpus

    ids = Corpus.open(folder / f"run-{case.family}" / "corpus").ids
    np.save(folder / f"{case.family}.npy", np.asarray(ids, np.int32))


def run_case(case: Case, threads: int, args) -> dict:
    libraries = ["plmcore"] + (["transformers"] if all(map(importlib.util.find_spec, PEER)) else [])
    with (
        tempfile.TemporaryDirectory(dir=args.folder) as name,
        contest.field(HERE / "worker.py", libraries, threads) as sides,
    ):
        folder = Path(name)
        write_text(folder / "text.txt")
        for library, side in sides.items():
            side.ask("load", case.name, folder, args.layers)
            if library == "plmcore":
                corpus_ids(folder, case)

        def speed(library: str) -> float:
            tokens, seconds, _ = sides[library].ask("steps", args.steps)
            return tokens / seconds

        for library in libraries:
            speed(library)  # the first ones allocate
        tied = lambda speeds: table.mark(speeds, case.target) == contest.TIE
        speeds = contest.alternate(libraries, args.rounds, args.pause, speed, undecided=tied)
        _, seconds, _ = sides["plmcore"].ask("steps", args.steps)
        first, later, written = sides["plmcore"].ask("save")
        overhead = sides["plmcore"].ask("overhead", 50) / (seconds / args.steps)
    return {
        "case": case.name,
        "threads": threads,
        "target": case.target,
        "speeds": speeds,
        "overhead": overhead,
        "first": first,
        "later": later,
        "written": written,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks/train", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=[], help="run the cases whose name contains one of these"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=4, help="training steps of a round")
    parser.add_argument("--pause", type=float, default=0.5)
    parser.add_argument(
        "--layers",
        type=int,
        default=0,
        help="models with so few layers and one short row, to try the benchmark itself",
    )
    parser.add_argument("--folder", help="where runs and checkpoints of up to 3 GB are put")
    parser.add_argument("--json", help="keep the results in this file")
    parser.add_argument("--write", action="store_true", help="write the table into benchmarks/README.md")
    parser.add_argument("--from", dest="earlier", metavar="JSON", help="take earlier results, run nothing")
    args = parser.parse_args()
    run = json.loads(Path(args.earlier).read_text()) if args.earlier else measure(args)
    if args.write:
        if run["layers"] or {r["case"] for r in run["results"]} != set(CASES):
            raise SystemExit("a part, or models with fewer layers, are no measurement: nothing was written")
        contest.write_between(README, table.BEGIN, table.END, table.markdown(run["machine"], run["results"]))
    missed = [what for r in run["results"] for what in table.missed(r)]
    for what in missed:
        print(f"missed: {what}")
    return 1 if missed else 0


def measure(args) -> dict:
    run = {"machine": contest.machine_line(["plmcore", *PEER]), "layers": args.layers, "results": []}
    print(run["machine"], flush=True)
    for threads in args.threads:
        for case in CASES.values():
            if args.only and not any(text.lower() in case.name.lower() for text in args.only):
                continue
            run["results"].append(run_case(case, threads, args))
            shown = zip(table.HEAD, table.cells(run["results"][-1]), strict=True)
            print(f"{contest.count_of(threads)}: " + "; ".join(f"{k}: {v}" for k, v in shown), flush=True)
            if args.json:
                Path(args.json).write_text(json.dumps(run, indent=1))
    return run


if __name__ == "__main__":
    raise SystemExit(main())
