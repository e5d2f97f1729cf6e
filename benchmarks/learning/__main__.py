"""Learning experiments with a published or derivable result: does training reach what it should?

    python benchmarks/learning                               # all but the nightly; data: PLM_DATA or --data
    python benchmarks/learning copy "causal LM, GPT-2" --seeds 0 1 --write
    python benchmarks/learning --list

--write keeps every result, as soon as it is there, in results.json, and makes the tables of docs/learning.md
from it. The status is 1 if an experiment misses its target.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time

if __package__ in (None, ""):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import contest
import plmcore as plm

from learning import table
from learning.experiments import EXPERIMENTS, Experiment

HERE = pathlib.Path(__file__).resolve().parent
RESULTS, PAGE = HERE / "results.json", HERE.parents[1] / "docs" / "learning.md"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/learning", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="experiments or groups (default: all but the nightly)"
    )
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--seeds", type=int, nargs="+", help="instead of each experiment's own")
    parser.add_argument(
        "--data",
        type=pathlib.Path,
        default=os.environ.get("PLM_DATA"),
        help="the data folder (default: PLM_DATA)",
    )
    parser.add_argument(
        "--folder", type=pathlib.Path, help="keep the runs here; those that were stopped go on"
    )
    parser.add_argument("--nightly", action="store_true", help="also those that take most of an hour")
    parser.add_argument("--missing", action="store_true", help="leave out seeds that results.json has")
    parser.add_argument("--write", action="store_true", help="keep the results, and write docs/learning.md")
    args = parser.parse_args()
    known = {*EXPERIMENTS, *(e.group for e in EXPERIMENTS.values())}
    if unknown := [name for name in args.names if name not in known]:
        parser.error(f"there is no experiment {unknown[0]!r}; there are {'; '.join(EXPERIMENTS)}")
    groups = set(args.names) - EXPERIMENTS.keys()  # "translation" is also the name of one
    args.chosen = [
        name
        for name, e in EXPERIMENTS.items()
        if (name in args.names or e.group in groups if args.names else True)
        and (args.nightly or not e.nightly or name in args.names)
    ]
    if any(EXPERIMENTS[name].needs_data for name in args.chosen) and not args.list:
        args.data = args.data or HERE.parents[2] / "shared" / "data"
        if not pathlib.Path(args.data).is_dir():
            parser.error(f"'{args.data}' is no folder: --data or PLM_DATA must name the data folder")
    return args


def stored() -> table.Results:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def keep(name: str, seed: int, found: dict) -> None:
    """Into results.json as it is now: another process may have written to it since."""
    results = stored()
    runs = results.get(name, {}) | {str(seed): found}
    results[name] = {key: runs[key] for key in sorted(runs, key=int)}
    ordered = {key: results[key] for key in EXPERIMENTS if key in results}
    temporary = RESULTS.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(ordered, indent=1) + "\n")
    temporary.replace(RESULTS)
    contest.write_between(PAGE, table.BEGIN, table.END, table.markdown(ordered))


def shared_time(experiment: Experiment, data: pathlib.Path | None, folder: pathlib.Path) -> dict[str, float]:
    """Makes what the seeds share, once, and notes in the folder what it took of the processor."""
    if experiment.prepare is None:
        return {}
    note = folder / "prepared.json"
    if not note.exists():
        processor = time.process_time()
        experiment.prepare(data, folder)
        note.write_text(json.dumps({"shared processor": round(time.process_time() - processor, 1)}))
    return json.loads(note.read_text())


def main() -> int:
    args = arguments()
    if args.list:
        for name, e in EXPERIMENTS.items():
            print(f"{name}{' (nightly)' if e.nightly else ''}: {e.target}")
        return 0
    data = args.data and pathlib.Path(args.data)
    machine, missed = contest.machine_line(["numpy"]).partition(";")[0], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or pathlib.Path(temporary)
        for name in args.chosen:
            experiment = EXPERIMENTS[name]
            own = folder / name.replace(", ", "-").replace(" ", "-")
            own.mkdir(parents=True, exist_ok=True)
            for seed in args.seeds or experiment.seeds:
                if args.missing and str(seed) in stored().get(name, {}):
                    continue
                shared = shared_time(experiment, data, own)
                start, processor = time.monotonic(), time.process_time()
                found = experiment.run(data, own, seed) | shared
                found |= {
                    "seconds": round(time.monotonic() - start, 1),
                    "processor": round(time.process_time() - processor, 1),  # of all threads
                    "threads": plm.num_threads(),
                    "machine": machine,
                }
                holds = experiment.holds(found)
                missed += [] if holds else [f"{name}, seed {seed}"]
                print(f"{name}, seed {seed}: {'' if holds else 'MISSED '}{found}", flush=True)
                if args.write:
                    keep(name, seed, found)
    if missed:
        print(f"missed: {'; '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
