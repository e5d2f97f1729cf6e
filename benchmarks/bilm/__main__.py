"""The forward pass of ELMo's bidirectional LSTM, 4096 cells and a projection of 512: plmcore beside torch.

    python benchmarks/bilm --threads 1 2 --write
    python benchmarks/bilm --small                # to try the benchmark itself

Each library runs in a process of its own, in alternating rounds. Of one thread processor time is compared,
of several the time on the clock. The status is 1 if the target is missed: 1.2 times torch's speed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import contest

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- benchmarks/bilm: begin -->", "<!-- benchmarks/bilm: end -->"
HEAD = ("threads", "plmcore, s", "torch, s", "ratio", "range", "target")
TARGET = 1.2


def run(threads: int, args: argparse.Namespace) -> dict:
    with contest.field(HERE / "worker.py", ["plmcore", "torch"], threads) as sides:
        for side in sides.values():
            side.ask("load", args.small)
        ours, theirs = (sides[library].ask("forward") for library in ("plmcore", "torch"))
        if (far := np.abs(ours - theirs).max()) > 1e-4:
            raise SystemExit(f"the two compute different things: {far}")
        timed = lambda library: sides[library].ask("time", args.passes)  # noqa: E731
        times = contest.alternate(["plmcore", "torch"], args.rounds, args.pause, timed)
    return {"threads": threads, "times": times}


def cells(result: dict) -> list[str]:
    times = result["times"]
    found = contest.ratios(times["plmcore"], times["torch"])
    return [
        str(result["threads"]),
        *(f"{statistics.median(times[library]):.2f}" for library in ("plmcore", "torch")),
        f"{found['ratio']:.2f}",
        f"{found['low']:.2f}–{found['high']:.2f}",
        f"{TARGET} {contest.verdict(found, TARGET)}",
    ]


def markdown(machine: str, results: list[dict]) -> str:
    note = (
        "Two layers, 4096 cells, a projection of 512, both directions, 32 texts of 20 words. Seconds "
        "of a forward pass, of one thread processor time, of two the time on the clock: medians over rounds; "
        f"the ratio is {contest.SPREAD}."
    )
    lines = (HEAD, ["---"] * len(HEAD), *map(cells, results))
    return f"{machine}. {note}\n\n" + "\n".join("| " + " | ".join(texts) + " |" for texts in lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks/bilm", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--passes", type=int, default=1, help="forward passes of a round")
    parser.add_argument("--pause", type=float, default=0.2)
    parser.add_argument("--small", action="store_true", help="a few cells: no measurement")
    parser.add_argument("--write", action="store_true", help="write the table into benchmarks/README.md")
    args = parser.parse_args()
    machine = contest.machine_line(["plmcore", "torch"])
    print(machine, flush=True)
    results = []
    for threads in args.threads:
        results.append(run(threads, args))
        print("; ".join(f"{k}: {v}" for k, v in zip(HEAD, cells(results[-1]))), flush=True)
    if args.write and not args.small:
        contest.write_between(README, BEGIN, END, markdown(machine, results))
    return 1 if any(contest.MISSED in " ".join(cells(r)) for r in results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
