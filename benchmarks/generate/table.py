"""The results as a table with every target met or missed, and its place in benchmarks/README.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import contest

from generate.cases import CASES, PACKAGES, Case

BEGIN, END = "<!-- benchmarks/generate: begin -->", "<!-- benchmarks/generate: end -->"
GPT2_WEIGHTS = 124_439_808
BANDWIDTH = 0.85  # the share that steps in float32 should reach
OVERHEAD = 0.02
MEMORY_PEER = "ctranslate2"
HEAD = (
    "case",
    "threads",
    "plmcore, tokens/s",
    *PACKAGES,
    "ratio, same threads",
    "each at its best",
    "target",
    "read bandwidth",
    "peak memory, MB",
    "same ids",
    "error of int8",
)


def merged(runs: Sequence[dict]) -> dict:
    """Partial runs as one, in the order of the cases; of a case that ran twice the later one counts."""
    found = {(r["case"], r["threads"]): r for run in runs for r in run["results"]}
    order = list(CASES)
    results = sorted(found.values(), key=lambda r: (order.index(r["case"]), -r["threads"]))
    overhead = [run["overhead"] for run in runs if run.get("overhead")]
    machines = dict.fromkeys(run["machine"] for run in runs)
    return {
        "machine": "\n\n".join(machines),
        "results": results,
        "overhead": overhead[-1] if overhead else None,
    }


def speed(result: dict, name: str) -> float:
    return CASES[result["case"]].tokens / statistics.median(result["times"][name])


def peers(result: dict) -> list[str]:
    return [name for name in result["times"] if name != "plmcore"]


def best(results: Sequence[dict], case: str, names: Sequence[str]) -> list[float]:
    """The times of the fastest of these libraries, of all thread counts that ran."""
    found = [r["times"][n] for r in results if r["case"] == case for n in names if n in r["times"]]
    return min(found, key=statistics.median)


def mark(good: bool) -> str:
    return contest.MET if good else contest.MISSED


def ratio_to_fastest(times: dict[str, list[float]]) -> dict[str, float] | None:
    """To the fastest peer that ran in all rounds, round by round; None without one."""
    ours = times["plmcore"]
    beside = [t for name, t in times.items() if name != "plmcore" and len(t) == len(ours)]
    return contest.ratios(ours, min(beside, key=statistics.median)) if beside else None


def ratio_at_best(results: Sequence[dict], case: str, peers: Sequence[str]) -> dict[str, float] | None:
    """Of the best times of both over thread counts: these rounds did not alternate, so each has a low and a
    high of its own.
    """
    if not peers:
        return None
    ours, theirs = best(results, case, ["plmcore"]), best(results, case, peers)
    (low, high), (their_low, their_high) = contest.interval(ours), contest.interval(theirs)
    ratio = statistics.median(theirs) / statistics.median(ours)
    return {"ratio": ratio, "low": their_low / high, "high": their_high / low}


def ratio_cell(found: dict[str, float] | None, target: float) -> str:
    return f"{found['ratio']:.2f} {contest.verdict(found, target)}" if found else ""


def bandwidth_cell(result: dict, case: Case) -> str:
    if case.size != "gpt2" or case.batch > 1 or case.new <= 1:
        return ""
    read = GPT2_WEIGHTS * (4 if case.weights == "float32" else 1)
    share = speed(result, "plmcore") * read / result["bandwidth"]
    text = f"{share:.0%} of {result['bandwidth'] / 1e9:.1f} GB/s"
    return f"{text} {mark(share >= BANDWIDTH)}" if case.weights == "float32" else text


def memory_cell(result: dict) -> str:
    memory = result["memory"]
    text = " / ".join(f"{memory[n] / 1e6:.0f}" for n in memory)
    return f"{text} {mark(memory['plmcore'] <= memory[MEMORY_PEER])}" if MEMORY_PEER in memory else text


def error_cell(result: dict) -> str:
    errors = result.get("errors", {})
    if not errors:
        return ""
    text = " / ".join(f"{x:.2g}" for x in errors.values())
    others = [x for name, x in errors.items() if name != "plmcore"]
    return f"{text} {mark(errors['plmcore'] <= min(others))}" if others else text


def cells(result: dict, results: Sequence[dict]) -> list[str]:
    case = CASES[result["case"]]
    beside = peers(result)
    return [
        case.name, str(result["threads"]), f"{speed(result, 'plmcore'):.1f}",
        *(f"{speed(result, p):.1f}" if p in result["times"] else "" for p in PACKAGES),
        ratio_cell(ratio_to_fastest(result["times"]), case.target),
        ratio_cell(ratio_at_best(results, case.name, beside), case.target),
        f"{case.target:.1f}",
        bandwidth_cell(result, case),
        memory_cell(result),
        " / ".join(f"{x:.0%}" for x in result["same"].values()),
        error_cell(result),
    ]  # fmt: skip


def overhead_line(overhead: dict) -> str:
    share = overhead["calls"] / overhead["step"]
    return (
        f"GPT-2 124M, batch 1, 1 thread: {1e3 * overhead['step']:.2f} ms a step, of which "
        f"{1e3 * overhead['calls']:.3f} ms outside of kernels, {share:.1%} {mark(share < OVERHEAD)} "
        f"(target: less than {OVERHEAD:.0%})"
    )


def markdown(run: dict) -> str:
    results = run["results"]
    lines = [HEAD, ["---"] * len(HEAD), *(cells(r, results) for r in results)]
    parts = [run["machine"], "\n".join(f"| {' | '.join(line)} |" for line in lines)]
    if run.get("overhead"):
        parts.append(f"{overhead_line(run['overhead'])}.")
    return "\n\n".join(parts)
