"""Generation beside transformers, CTranslate2 and llama.cpp on the CPU, with random weights, in float32 and
with int8 weights.

    python benchmarks/generate --threads 2 1 --json generate.json
    python benchmarks/generate --only GPT-2 --threads 2 --json gpt2.json
    python benchmarks/generate --overhead --json overhead.json     # a step of GPT-2 outside of its kernels
    python benchmarks/generate --from gpt2.json others.json overhead.json --write

Each library runs in a process of its own, in alternating rounds with a pause; the ids are compared first. A
peer that takes twice as long as the fastest one is timed once, and not with other thread counts. Ratios are
to the fastest peer on as many threads, and of the best of both over the thread counts that ran; a target
between the low and the high of a ratio is a tie, for which there are more rounds. Of GPT-2 with
batch 1 the share of the read bandwidth is shown too, which is measured in the same run. With int8 weights
(llama.cpp: Q8_0) ids differ, and what counts is the error of each library: the root mean square of the
difference to plmcore in float32 on the same weights, over the log-probabilities of a fixed text (of BERT:
over its states).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest
import numpy as np
import plmcore

from generate import overhead, table
from generate.cases import CASES, PACKAGES, Case

HERE = Path(__file__).resolve().parent
WORKER = HERE / "worker.py"
README = HERE.parent / "README.md"
SLOW = 2.0  # a peer that takes this many times as long as the fastest one is not timed again


def write_model(case: Case, base: Path, layers: int, peers: list[str]) -> Path:
    peers = [p for p in peers if p != "transformers"] + (["int8"] if case.weights == "int8" else [])
    folder = base / (case.size + (f"-{layers}-layers" if layers else ""))
    if not all((folder / p).exists() for p in ("transformers", *peers)):
        print(f"writing {case.size}", file=sys.stderr, flush=True)
        command = [sys.executable, str(HERE / "write.py"), case.size, str(folder), str(layers), *peers]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise contest.ContestError(f"{case.size} could not be written:\n{done.stdout[-3000:]}")
    return folder


def timed(sides: dict, rounds: int, pause: float, target: float) -> dict[str, list[float]]:
    """Seconds by library and round; after the first one without peers that are far from the fastest, with
    more rounds for a tie.
    """
    ask = lambda name: sides[name].ask("time", 0.0)
    times = contest.alternate(list(sides), 1, pause, ask)
    left = [name for name in times if name not in far_behind(times)]

    def tied(more: dict[str, list[float]]) -> bool:
        found = table.ratio_to_fastest({name: times[name] + more[name] for name in left})
        return found is not None and contest.verdict(found, target) == contest.TIE

    for name, more in contest.alternate(left, rounds - 1, pause, ask, undecided=tied).items():
        times[name] += more
    return times


def far_behind(times: dict[str, list[float]]) -> set[str]:
    """Peers that the first round shows to be no match for the fastest one."""
    first = {name: t[0] for name, t in times.items() if name != "plmcore"}
    return {name for name, t in first.items() if t > SLOW * min(first.values())}


def exact_scores(case: Case, folder: Path, threads: int) -> np.ndarray:
    """Of plmcore in float32; kept beside the model."""
    path = folder / f"{case.name.replace('/', ' ')}.npy"
    if not path.exists():
        with contest.field(WORKER, ["plmcore"], threads) as exact:
            exact["plmcore"].ask("load", case.name, folder, "float32")
            np.save(path, exact["plmcore"].ask("scores"))
    return np.load(path)


def run_case(case: Case, folder: Path, peers: list[str], threads: int, args) -> dict:
    with contest.field(WORKER, ["plmcore", *peers], threads) as sides:
        outputs = {}
        for name, side in sides.items():
            side.ask("load", case.name, folder)
            outputs[name] = side.ask("outputs")
        same = (
            {p: float((outputs[p] == outputs["plmcore"]).mean()) for p in peers}
            if case.weights == "float32"
            else {}
        )
        times = timed(sides, args.rounds or case.rounds, args.pause, case.target)
        memory = {name: side.ask("memory") for name, side in sides.items()}
        bandwidth = sides["plmcore"].ask("bandwidth")
        scores = (
            {name: side.ask("scores") for name, side in sides.items()} if case.weights != "float32" else {}
        )
    errors = {}
    if scores:
        truth = exact_scores(case, folder, threads)
        errors = {name: float(np.sqrt(np.mean((found - truth) ** 2))) for name, found in scores.items()}
    return {
        "errors": errors,
        "case": case.name,
        "threads": threads,
        "times": times,
        "same": same,
        "memory": memory,
        "bandwidth": bandwidth,
    }


def machine() -> str:
    return contest.machine_line(("plmcore", "torch", "transformers", "ctranslate2", "llama-cpp-python"))


def measure(args) -> dict:
    present = [p for p, needs in PACKAGES.items() if all(importlib.util.find_spec(m) for m in needs)]
    if "transformers" not in present:
        raise SystemExit("the models are written by transformers: there is nothing to run without it")
    for p in args.peers or PACKAGES:
        if p not in present:
            print(f"{p}: left out, it needs pip install {' '.join(PACKAGES[p].values())}", file=sys.stderr)
    run = {"machine": machine(), "results": []}
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    peers = [p for p in present if p in (args.peers or PACKAGES)]
    place = contextlib.nullcontext(args.folder) if args.folder else tempfile.TemporaryDirectory()
    with place as folder:
        for threads in args.threads:
            for case in CASES.values():
                if args.only and not any(text.lower() in case.name.lower() for text in args.only):
                    continue
                if case.weights == "int8" and not hasattr(plmcore, "quantize"):
                    print(f"{case.name}: left out, this plmcore has no quantize", file=sys.stderr)
                    continue
                slow = {p for r in run["results"] if r["case"] == case.name for p in far_behind(r["times"])}
                slow -= {table.MEMORY_PEER}  # its memory counts with every thread count
                beside = [p for p in peers if p in case.peers and p not in slow]
                at = write_model(case, Path(folder), args.layers, beside)
                start = time.perf_counter()
                run["results"].append(run_case(case, at, beside, threads, args))
                took = f"({time.perf_counter() - start:.0f} s)"
                print(*table.cells(run["results"][-1], run["results"]), took, sep="  ", flush=True)
                if args.json:
                    Path(args.json).write_text(json.dumps(run, indent=1))
    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks/generate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=[], help="run the cases whose name contains one of these"
    )
    parser.add_argument(
        "--peers",
        nargs="*",
        choices=list(PACKAGES),
        help="beside which libraries (default: all that are installed)",
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--rounds", type=int, help="instead of those of each case")
    parser.add_argument("--pause", type=float, default=0.4)
    parser.add_argument("--folder", type=Path, help="keep the models here instead of in a temporary folder")
    parser.add_argument("--json", help="write the results here, after each case")
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/README.md")
    parser.add_argument(
        "--from",
        dest="earlier",
        metavar="JSON",
        nargs="+",
        type=Path,
        help="show earlier results as one, run nothing",
    )
    # To try the benchmark itself.
    parser.add_argument("--layers", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--overhead", action="store_true", help="measure that alone, on one thread")
    args = parser.parse_args()
    if args.earlier:
        run = table.merged([json.loads(path.read_text()) for path in args.earlier])
    elif args.overhead:
        run = {"machine": machine(), "results": [], "overhead": overhead.measure()}
        print(table.overhead_line(run["overhead"]))
        if args.json:
            Path(args.json).write_text(json.dumps(run, indent=1))
        return
    else:
        run = measure(args)
    print(f"\n{table.markdown(run)}")
    if args.write:
        contest.write_between(README, table.BEGIN, table.END, table.markdown(run))


if __name__ == "__main__":
    main()
