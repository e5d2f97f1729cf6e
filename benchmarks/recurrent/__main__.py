"""A training step of recurrent language models: plmcore beside torch.nn.LSTM and fastai's AWD_LSTM.

    python benchmarks/recurrent --threads 1 2 --write
    python benchmarks/recurrent --small                # to try the benchmark itself

Each library runs in a process of its own, same thread count, in alternating rounds with a pause. The status
is 1 if a target is missed: 1.2 times torch's speed at no more than its memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

from recurrent.cases import CASES, MEMORY, TARGET

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- benchmarks/recurrent: begin -->", "<!-- benchmarks/recurrent: end -->"
HEAD = ("case", "threads", "plmcore, s", "torch, s", "ratio", "range", "target", "memory, MB", "target")
PEERS = ("torch", "fastai")


def run_case(name: str, threads: int, args: argparse.Namespace) -> dict:
    libraries = ["plmcore"] + (["torch"] if all(map(importlib.util.find_spec, PEERS)) else [])
    with contest.field(HERE / "worker.py", libraries, threads) as sides:
        for side in sides.values():
            side.ask("load", name, args.small)
        timed = lambda library: sides[library].ask("steps", args.steps)[0]
        tied = lambda times: "torch" in times and mark(times) == contest.TIE
        times = contest.alternate(libraries, args.rounds, args.pause, timed, args.limit, undecided=tied)
        memory = {library: side.ask("memory") for library, side in sides.items()}
    return {"case": name, "threads": threads, "times": times, "memory": memory}


def mark(times: dict[str, list[float]]) -> str:
    return contest.verdict(contest.ratios(times["plmcore"], times["torch"]), TARGET)


def cells(result: dict) -> list[str]:
    times, memory = result["times"], result["memory"]
    texts = [result["case"], str(result["threads"]), f"{statistics.median(times['plmcore']):.2f}"]
    if "torch" not in times:
        return [*texts, "–", "–", "–", f"{TARGET}", f"{memory['plmcore']:.0f}", "–"]
    found, share = contest.ratios(times["plmcore"], times["torch"]), memory["plmcore"] / memory["torch"]
    return [
        *texts,
        f"{statistics.median(times['torch']):.2f}",
        f"{found['ratio']:.2f}",
        f"{found['low']:.2f}–{found['high']:.2f}",
        f"{TARGET} {mark(times)}",
        f"{memory['plmcore']:.0f} of {memory['torch']:.0f}",
        f"{MEMORY} {contest.MET if share <= MEMORY else contest.MISSED}",
    ]


def markdown(machine: str, results: list[dict]) -> str:
    note = (
        "Seconds of a step, with the state of the step before, clipping and SGD: medians over rounds; the "
        f"ratio is {contest.SPREAD}. A target between the two is a {contest.TIE}. Memory is what the model "
        "and its steps add to the process."
    )
    lines = (HEAD, ["---"] * len(HEAD), *map(cells, results))
    return f"{machine}. {note}\n\n" + "\n".join("| " + " | ".join(texts) + " |" for texts in lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks/recurrent", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2, help="training steps of a round")
    parser.add_argument("--pause", type=float, default=0.2)
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds of one case, about")
    parser.add_argument("--small", action="store_true", help="few words and short rows: no measurement")
    parser.add_argument("--write", action="store_true", help="write the table into benchmarks/README.md")
    args = parser.parse_args()
    machine = contest.machine_line(["plmcore", *PEERS])
    print(machine, flush=True)
    results = []
    for threads in args.threads:
        for name in CASES:
            results.append(run_case(name, threads, args))
            print("; ".join(f"{k}: {v}" for k, v in zip(HEAD, cells(results[-1]))), flush=True)
    if args.write and not args.small:
        contest.write_between(README, BEGIN, END, markdown(machine, results))
    missed = [r for r in results if contest.MISSED in " ".join(cells(r))]
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
