"""Results as tables: one row per case and target, with the word whether it was met."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

import contest

from models.cases import CASES, FASTEST, FORWARD_PEERS

TITLES = {
    "plmcore": "plmcore",
    "transformers": "transformers",
    "onnxruntime": "ONNX Runtime",
    "ctranslate2": "CTranslate2",
}
KINDS = {
    "forward": "Forward, ms",
    "train": "Training step, ms, and peak resident memory, GB",
    "load": "Loading and the first output, ms",
}
BEHIND = "behind"
NOTE = (
    "Times are medians over two to seven rounds, more for a tie. The ratio is the peer's time / plmcore's, "
    f"{contest.SPREAD}. A target between the two is a {contest.TIE}, else {contest.MET} or "
    f"{contest.MISSED}; {BEHIND} means missed with less than 0.9 of the peer."
)
BEGIN, END = "<!-- benchmarks/models: begin -->", "<!-- benchmarks/models: end -->"


def median(result: dict, library: str) -> float | None:
    """Median seconds of a library over all rounds it ran in; None where it was skipped."""
    pairs = result["pairs"]
    if library != "plmcore":
        return statistics.median(pairs[library]["theirs"]) if library in pairs else None
    seen = {tuple(pair["ours"]) for pair in pairs.values()}  # one list where the whole field ran together
    return statistics.median([t for ours in seen for t in ours]) if seen else None


def rows(result: dict) -> list[dict]:
    """What came of each target: peer, ratio, low, high, target, mark. No ratio where the peer was skipped."""
    found = []
    for peer, target in result["targets"]:
        if peer == FASTEST:
            peer = min(result["pairs"], key=lambda name: median(result, name), default=None)
        pair = result["pairs"].get(peer)
        row = {"peer": peer, "target": target, "ratio": None, "mark": ""}
        if pair:
            row |= contest.ratios(pair["ours"], pair["theirs"])
            mark = contest.verdict(row, target)
            row["mark"] = BEHIND if mark == contest.MISSED and row["ratio"] < 0.9 else mark
        found.append(row)
    return found


def is_tied(result: dict) -> bool:
    return any(row["mark"] == contest.TIE for row in rows(result))


def memory(result: dict) -> dict:
    """Peak memory of plmcore and torch in GB, their ratio, the target, the mark."""
    ours, theirs = (result["memory"].get(name) for name in ("plmcore", "transformers"))
    limit = result["memory_target"]
    ratio = ours / theirs if ours and theirs else None
    mark = ""
    if ratio is not None and limit is not None:
        mark = contest.MISSED if ratio > limit else contest.MET
    return {"ours": ours, "theirs": theirs, "ratio": ratio, "target": limit, "mark": mark}


def missed(results: Iterable[dict]) -> int:
    marks = [row["mark"] for r in results for row in rows(r)]
    marks += [memory(r)["mark"] for r in results if r["kind"] == "train"]
    return sum(mark in (contest.MISSED, BEHIND) for mark in marks)


def summary(results: Sequence[dict]) -> str:
    absent = sum(row["ratio"] is None for r in results for row in rows(r))
    ties = sum(row["mark"] == contest.TIE for r in results for row in rows(r))
    return (
        f"{len(results)} cases, {missed(results)} targets missed, {ties} ties, {absent} not measured for "
        f"want of the peer"
    )


def number(value: float | None, form: str, scale: float = 1.0) -> str:
    return "–" if value is None else format(value * scale, form)


def milliseconds(seconds: float | None) -> str:
    return number(seconds, ".1f" if seconds is not None and seconds < 0.1 else ".0f", 1e3)


def header(kind: str) -> list[str]:
    peers = [TITLES[p] for p in FORWARD_PEERS] if kind == "forward" else ["transformers"]
    end = ["plmcore GB", "torch GB", "memory", "at most"] if kind == "train" else []
    return ["case", "plmcore", *peers, "against", "ratio", "low–high", "target", *end]


def cells(result: dict) -> list[list[str]]:
    """The table's lines for a result, one per target."""
    kind = result["kind"]
    lines = []
    for row in rows(result):
        times = [
            milliseconds(median(result, n))
            for n in ("plmcore", *FORWARD_PEERS[: 3 if kind == "forward" else 1])
        ]
        has = row["ratio"] is not None
        spread = f"{row['low']:.2f}–{row['high']:.2f}" if has else "–"
        line = [result["case"], *times, TITLES.get(row["peer"], "–"), number(row["ratio"], ".2f"), spread]
        line.append(f"{row['target']:.2f} {row['mark']}".strip())
        if kind == "train":
            m = memory(result)
            line += [number(m["ours"], ".2f", 1e-9), number(m["theirs"], ".2f", 1e-9)]
            line += [number(m["ratio"], ".2f"), f"{number(m['target'], '.2f')} {m['mark']}".strip()]
        lines.append(line)
    return lines


WIDTHS = {"case": 37, "against": 12, "low–high": 9, "target": 11, "at most": 11}


def line(texts: Sequence[str], kind: str) -> str:
    """A line of a Markdown table that also lines up in a terminal."""
    widths = [WIDTHS.get(h, max(len(h), 7)) for h in header(kind)]
    aligned = [
        t.ljust(w) if h in ("case", "against") else t.rjust(w)
        for t, w, h in zip(texts, widths, header(kind), strict=True)
    ]
    return f"| {' | '.join(aligned)} |"


def top(kind: str) -> str:
    rules = ["---" if h in ("case", "against") else "--:" for h in header(kind)]
    return line(header(kind), kind) + "\n" + line(rules, kind)


def markdown(machine: str, results: Sequence[dict], remarks: Sequence[str] = ()) -> str:
    """All tables: by number of threads, then by kind."""
    parts = [machine + ".", NOTE, *remarks]
    for threads in dict.fromkeys(r["threads"] for r in results):
        for kind, title in KINDS.items():
            chosen = [r for r in results if r["threads"] == threads and r["kind"] == kind]
            if chosen:
                parts.append(f"### {title}, {contest.count_of(threads)}")
                lines = [line(texts, kind) for r in chosen for texts in cells(r)]
                parts.append("\n".join([top(kind), *lines]))
    return "\n\n".join(parts)


def merge(runs: Sequence[dict]) -> dict:
    """One run of several of the same machine, versions and settings; of a case measured twice the later
    counts, in the earlier's place.
    """
    settings = list(
        dict.fromkeys(tuple([run["machine"], f"layers {run['layers']}", *run["remarks"]]) for run in runs)
    )
    if len(settings) != 1:
        told = "\n".join("; ".join(texts) for texts in settings)
        raise SystemExit(
            f"the runs are of different machines, versions or settings, which one table cannot show:\n{told}"
        )
    results: dict[tuple, dict] = {}
    for run in runs:
        for r in run["results"]:
            results[r["threads"], r["case"]] = r
    return runs[0] | {"results": list(results.values())}


def publish(path: Path, run: dict) -> None:
    """Writes the tables of a run that has every case at its full size."""
    if run["layers"]:
        raise SystemExit(
            f"models of {run['layers']} layers are no measurement: nothing was written to {path}"
        )
    have = {(r["threads"], r["case"]) for r in run["results"]}
    missing = [
        f"{name}, {contest.count_of(n)}"
        for n in sorted({n for n, _ in have})
        for name in CASES
        if (n, name) not in have
    ]
    if missing or not have:
        raise SystemExit(
            f"nothing was written to {path}: there are no results of {'; '.join(missing) or 'any case'}"
        )
    contest.write_between(path, BEGIN, END, markdown(run["machine"], run["results"], run["remarks"]))
