"""The results as a table, and its place in benchmarks/README.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import contest

BEGIN, END = "<!-- benchmarks/families: begin -->", "<!-- benchmarks/families: end -->"
HEAD = ("case", "plmcore ms", "peer", "peer ms", "ratio", "low–high", "target", "memory", "at most", "error")
NOTE = (
    f"Times are medians over rounds. The ratio is the peer's time / plmcore's, {contest.SPREAD}. A target "
    f"between the two is a {contest.TIE}, else {contest.MET} or {contest.MISSED}. Memory is plmcore's peak / "
    "the peer's, of whole processes. Errors are the largest differences of outputs and losses, over three "
    "steps where there are steps; GPT-2 and the softmax over all words are other models and have none. The "
    "peers GPT-2 and BART are plmcore's own."
)


def verdicts(result: dict) -> dict[str, dict]:
    """By peer: ratio, low, high, what came of the target, and of that for the memory."""
    found, times = {}, result["times"]
    for peer, target in result["targets"].items():
        if peer in times:
            row = contest.ratios(times["plmcore"], times[peer])
            share = result["memory"]["plmcore"] / result["memory"][peer]
            limit = result["memory_target"]
            held = "" if limit is None else contest.MET if share <= limit else contest.MISSED
            found[peer] = row | {"mark": contest.verdict(row, target), "memory": share, "held": held}
    return found


def cells(result: dict) -> list[list[str]]:
    """The table's lines for a result, one for each peer."""
    ours = statistics.median(result["times"]["plmcore"])
    lines = []
    for peer, row in verdicts(result).items():
        limit = result["memory_target"]
        lines.append(
            [
                result["case"],
                f"{1e3 * ours:.1f}",
                peer,
                f"{1e3 * statistics.median(result['times'][peer]):.1f}",
                f"{row['ratio']:.2f}",
                f"{row['low']:.2f}–{row['high']:.2f}",
                f"{result['targets'][peer]:.2f} {row['mark']}",
                f"{row['memory']:.2f}",
                "–" if limit is None else f"{limit:.2f} {row['held']}",
                "–" if result["error"] is None else f"{result['error']:.0e}",
            ]
        )
    return lines


def missed(results: Sequence[dict]) -> list[str]:
    return [
        f"{r['case']}, {contest.count_of(r['threads'])}, {peer}: {row['ratio']:.2f}, "
        f"memory {row['memory']:.2f}"
        for r in results
        for peer, row in verdicts(r).items()
        if contest.MISSED in (row["mark"], row["held"])
    ]


def merged(runs: Sequence[dict]) -> dict:
    """Of a case that was measured twice the later counts."""
    machines = {run["machine"] for run in runs}
    if len(machines) != 1:
        raise SystemExit(f"the runs are of different machines or versions: {'; '.join(machines)}")
    found = {(r["threads"], r["case"]): r for run in runs for r in run["results"]}
    return runs[0] | {"results": list(found.values())}


def markdown(run: dict) -> str:
    parts = [f"{run['machine']}. {NOTE}"]
    for threads in dict.fromkeys(r["threads"] for r in run["results"]):
        lines = [line for r in run["results"] if r["threads"] == threads for line in cells(r)]
        rows = (HEAD, ["---"] * len(HEAD), *lines)
        busy = any(r["clock"] == "processor" for r in run["results"] if r["threads"] == threads)
        parts += [
            f"### {contest.count_of(threads)}{', processor time' if busy else ''}",
            "\n".join(f"| {' | '.join(row)} |" for row in rows),
        ]
    return "\n\n".join(parts)
