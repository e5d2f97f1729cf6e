"""Results as lines: in the terminal while they come, and as a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import contest

from ops.cases import CASES

BEGIN, END = "<!-- benchmarks/ops: begin -->", "<!-- benchmarks/ops: end -->"
HEADER = [
    "case",
    "plmcore ms",
    "torch ms",
    "ratio",
    "low–high",
    "target",
    "rate",
    "of the machine's",
    "error",
]
WIDTHS = [42, 10, 10, 6, 11, 12, 11, 16, 6]
BEHIND = "behind"
NOTE = (
    f"Times are medians over rounds. The ratio is PyTorch's time / plmcore's, {contest.SPREAD}. "
    f"A target between the two is a {contest.TIE}, else {contest.MET} or {contest.MISSED}; {BEHIND} means "
    "missed with less than 0.9 of PyTorch. "
    "Some cases must also reach a share of what the machine was measured to do, by a loop of "
    "multiply-adds and one of reads. Errors are the largest differences of outputs or gradients from "
    "PyTorch's; dropout has none to compare."
)


def share(result: dict) -> float | None:
    """What part of the machine's arithmetic or read bandwidth a case reaches."""
    if result["gflops"]:
        return result["gflops"] / result["limit_gflops"]
    return result["gbps"] / result["limit_gbps"] if result["gbps"] else None


def mark(result: dict) -> str:
    if not result["target"]:
        return ""
    if (share(result) or 0.0) < result["share"]:
        return contest.MISSED
    found = contest.verdict(result, result["target"])
    return BEHIND if found == contest.MISSED and result["ratio"] < 0.9 else found


def cells(result: dict) -> list[str]:
    rate = f"{result['gbps']:.1f} GB/s" if result["gbps"] else ""
    if result["gflops"]:
        rate = f"{result['gflops']:.0f} GFLOP/s"
    part = "" if share(result) is None else f"{share(result):.0%}"
    if result["share"]:
        part += f", {result['share']:.0%} wanted"
    return [
        result["case"],
        f"{result['plmcore_ms']:.3f}",
        f"{result['torch_ms']:.3f}",
        f"{result['ratio']:.2f}",
        f"{result['low']:.2f}–{result['high']:.2f}",
        f"{result['target']:.2f} {mark(result)}" if result["target"] else "",
        rate,
        part,
        "" if result["error"] is None else f"{result['error']:.0e}",
    ]


def line(texts: Sequence[str]) -> str:
    """A line of a Markdown table that also lines up in a terminal."""
    first, *others = zip(texts, WIDTHS, strict=True)
    return f"| {' | '.join([first[0].ljust(first[1]), *(t.rjust(w) for t, w in others)])} |"


def top(result: dict) -> str:
    """The limits, and the head of the table."""
    limits = f"FMA loop {result['limit_gflops']:.0f} GFLOP/s, memory read {result['limit_gbps']:.1f} GB/s"
    return (
        f"{contest.count_of(result['threads'])}: "
        f"{limits}\n\n{line(HEADER)}\n{line(['---', *['--:'] * (len(HEADER) - 1)])}"
    )


def summary(results: Sequence[dict]) -> str:
    marks = [mark(r) for r in results]
    below = sum(r["ratio"] < 0.9 for r in results)
    return (
        f"{len(marks)} rows, {marks.count(contest.MISSED) + marks.count(BEHIND)} targets missed, "
        f"{marks.count(contest.TIE)} ties, {below} rows below 0.9 of PyTorch"
    )


def markdown(run: dict) -> str:
    """A table for each number of threads."""
    parts = [run["machine"] + f"; {run['settings']}.", NOTE, summary(run["results"]) + "."]
    for threads in dict.fromkeys(r["threads"] for r in run["results"]):
        chosen = [r for r in run["results"] if r["threads"] == threads]
        parts.append("\n".join([top(chosen[0]), *(line(cells(r)) for r in chosen)]))
    return "\n\n".join(parts)


def publish(path: Path, run: dict) -> None:
    """Writes the tables of a run that has every case."""
    have = {(r["threads"], r["case"]) for r in run["results"]}
    missing = [
        f"{c}, {contest.count_of(n)}"
        for n in sorted({n for n, _ in have})
        for c in CASES
        if (n, c) not in have
    ]
    if missing or not have:
        raise SystemExit(
            f"nothing was written to {path}: there are no results of {'; '.join(missing) or 'any case'}"
        )
    contest.write_between(path, BEGIN, END, markdown(run))
