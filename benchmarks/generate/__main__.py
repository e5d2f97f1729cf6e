"""Generation beside transformers and CTranslate2 on the CPU, with random weights, in float32 and with int8 weights.

    python benchmarks/generate --threads 2 1 --json generate.json
    python benchmarks/generate --only GPT-2 --threads 2
    python benchmarks/generate --from generate.json --write
    python benchmarks/generate --overhead            # what a step of GPT-2 costs outside of its kernels

Each library runs in a process of its own, in alternating rounds with a pause; the ids are compared first. A peer's time is that of
its best thread count among those that ran. Of GPT-2 with batch 1 the share of the read bandwidth is shown too, which is measured in the same run. With int8 weights ids differ, and what counts is the error of each
library: the root mean square of the difference to plmcore in float32 on the same weights, over the log-probabilities of a fixed text (of BERT: over its states).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest
import numpy as np
import plmcore

from generate import overhead
from generate.cases import CASES, PACKAGES, Case

HERE = Path(__file__).resolve().parent
WORKER = HERE / "worker.py"
README = HERE.parent / "README.md"
GPT2_BYTES = 4 * 124_439_808
BEGIN, END = "<!-- benchmarks/generate: begin -->", "<!-- benchmarks/generate: end -->"


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


def run_case(case: Case, folder: Path, peers: list[str], threads: int, args) -> dict:
    with contest.field(WORKER, ["plmcore", *peers], threads) as sides:
        outputs = {}
        for name, side in sides.items():
            side.ask("load", case.name, folder)
            outputs[name] = side.ask("outputs")
        same = {p: float((outputs[p] == outputs["plmcore"]).mean()) for p in peers} if case.weights == "float32" else {}
        times = contest.alternate(
            list(sides), args.rounds or case.rounds, args.pause, lambda name: sides[name].ask("time", 0.0)
        )
        memory = {name: side.ask("memory") for name, side in sides.items()}
        bandwidth = sides["plmcore"].ask("bandwidth")
        scores = {name: side.ask("scores") for name, side in sides.items()} if case.weights != "float32" else {}
    errors = {}
    if scores:
        with contest.field(WORKER, ["plmcore"], threads) as exact:
            exact["plmcore"].ask("load", case.name, folder, "float32")
            truth = exact["plmcore"].ask("scores")
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


def rows(results: list[dict]) -> list[list[str]]:
    """A line for each case and thread count."""
    lines = []
    for r in results:
        case = CASES[r["case"]]
        speed = {name: case.tokens / statistics.median(times) for name, times in r["times"].items()}
        peers = [n for n in speed if n != "plmcore"]
        best = {  # of all thread counts
            p: max(
                case.tokens / statistics.median(o["times"][p])
                for o in results
                if o["case"] == case.name and p in o["times"]
            )
            for p in peers
        }
        ratio = speed["plmcore"] / max(best.values()) if best else float("nan")
        share = ""
        if case.size == "gpt2" and case.batch == 1 and case.new > 1:
            read = GPT2_BYTES / (1 if case.weights == "float32" else 4)
            share = f"{speed['plmcore'] * read / r['bandwidth']:.0%} of {r['bandwidth'] / 1e9:.1f} GB/s"
        lines.append(
            [
                case.name, str(r["threads"]), f"{speed['plmcore']:.1f}",
                *(f"{speed[p]:.1f}" if p in speed else "" for p in PACKAGES),
                f"{ratio:.2f}", f"{case.target:.1f}{'' if ratio >= case.target else ' missed'}", share,
                " / ".join(f"{r['memory'][n] / 1e6:.0f}" for n in r["memory"]),
                " / ".join(f"{x:.0%}" for x in r["same"].values()),
                " / ".join(f"{x:.2g}" for x in r.get("errors", {}).values()),
            ]
        )  # fmt: skip
    return lines


HEADER = [
    "case",
    "threads",
    "plmcore, tokens/s",
    *PACKAGES,
    "to the fastest peer at its best",
    "target",
    "bandwidth",
    "peak memory, MB",
    "same ids",
    "error of int8",
]


def markdown(run: dict) -> str:
    lines = [HEADER, ["---"] * len(HEADER), *rows(run["results"])]
    return run["machine"] + "\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def measure(args) -> dict:
    present = [p for p, needs in PACKAGES.items() if all(importlib.util.find_spec(m) for m in needs)]
    if "transformers" not in present:
        raise SystemExit("the models are written by transformers: there is nothing to run without it")
    run = {"machine": contest.machine_line(("plmcore", "torch", "transformers", "ctranslate2")), "results": []}
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
                beside = [p for p in peers if p in case.peers]
                at = write_model(case, Path(folder), args.layers, beside)
                run["results"].append(run_case(case, at, beside, threads, args))
                print(*rows(run["results"])[-1], sep="  ", flush=True)
                if args.json:
                    Path(args.json).write_text(json.dumps(run, indent=1))
    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks/generate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], help="run the cases whose name contains one of these")
    parser.add_argument(
        "--peers", nargs="*", choices=list(PACKAGES), help="beside which libraries (default: all that are installed)"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--rounds", type=int, help="instead of those of each case")
    parser.add_argument("--pause", type=float, default=0.4)
    parser.add_argument("--folder", type=Path, help="keep the models here instead of in a temporary folder")
    parser.add_argument("--json", help="write the results here, after each case")
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/README.md")
    parser.add_argument("--from", dest="earlier", metavar="JSON", help="show earlier results, run nothing")
    parser.add_argument("--layers", type=int, default=0, help=argparse.SUPPRESS)  # to try the benchmark itself
    parser.add_argument("--overhead", action="store_true", help="measure that alone, on one thread")
    args = parser.parse_args()
    if args.overhead:
        print(overhead.measure())
        return
    run = json.loads(Path(args.earlier).read_text()) if args.earlier else measure(args)
    print(f"\n{markdown(run)}")
    if args.write:
        contest.write_between(README, BEGIN, END, markdown(run))


if __name__ == "__main__":
    main()
