"""The results as a table, and its place in benchmarks/README.md."""

from __future__ import annotations

import statistics

import contest

BEGIN, END = "<!-- benchmarks/objectives: begin -->", "<!-- benchmarks/objectives: end -->"
FASTER, SHARE = 10.0, 0.05  # what the project has set itself
HEAD = (
    "objective",
    "batch",
    "plmcore, ms",
    "tokens/s",
    "collator (torch), ms",
    "ratio",
    "collator (NumPy), ms",
    "ratio",
    "share of a step",
)
NOTE = (
    "transformers' collators get examples that are ready; plmcore reads its corpus as well. Ratios are "
    "medians over rounds, against the form that collators have by default (torch) and the other; "
    rf"objectives without a ratio have no collator. \* marks a ratio below {FASTER:.0f} to the default "
    rf"form, or a share above {SHARE:.0%}; a ratio that rounds place on both sides of {FASTER:.0f} is a "
    rf"{contest.TIE}."
)


def ratio(result: dict, peer: str) -> float | None:
    times = result["peers"].get(peer)
    return contest.ratios(result["times"], times)["ratio"] if times else None


def mark(times: list[float], collator: list[float]) -> str:
    """What came of the ratio to the default form."""
    return contest.verdict(contest.ratios(times, collator), FASTER)


MARKS = {contest.MET: "", contest.MISSED: "*", contest.TIE: f" {contest.TIE}"}


def cells(result: dict) -> list[str]:
    time = statistics.median(result["times"])
    texts = [result["case"], result["size"], f"{1e3 * time:.2f}", f"{result['tokens'] / time:,.0f}"]
    for peer in ("torch", "numpy"):
        found = ratio(result, peer)
        if found is None:
            texts += ["–", "–"]
            continue
        sign = MARKS[mark(result["times"], result["peers"][peer])] if peer == "torch" else ""
        texts += [f"{1e3 * statistics.median(result['peers'][peer]):.2f}", f"{found:.1f}{sign}"]
    share = result["share"]
    return [*texts, "" if share is None else f"{100 * share:.1f} %{'*' if share >= SHARE else ''}"]


def missed(result: dict) -> list[str]:
    """What did not reach its target."""
    name, found = f"{result['case']}, {result['size']}", ratio(result, "torch")
    texts = (
        [f"{name}: {found:.1f} times the collator's rate, {FASTER:.0f} wanted"]
        if found and mark(result["times"], result["peers"]["torch"]) == contest.MISSED
        else []
    )
    if result["share"] is not None and result["share"] >= SHARE:
        texts.append(f"{name}: {100 * result['share']:.1f} % of a step, {SHARE:.0%} allowed")
    return texts


def markdown(run: dict) -> str:
    lines = [cells(result) for result in run["results"]]
    table = "\n".join("| " + " | ".join(texts) + " |" for texts in (HEAD, ["---"] * len(HEAD), *lines))
    step = f"A step of `gpt2 tiny` takes {1e3 * run['step']:.1f} ms."
    return f"{run['machine']}. {step} {NOTE}\n\n{table.replace('*', chr(92) + '*')}"
