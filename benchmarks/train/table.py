"""The results as a table, and its place in benchmarks/README.md."""

from __future__ import annotations

import statistics

import contest

from train.cases import BLOCKED, OVERHEAD

BEGIN, END = "<!-- benchmarks/train: begin -->", "<!-- benchmarks/train: end -->"
HEAD = (
    "case",
    "plmcore, tokens/s",
    "torch + transformers",
    "ratio",
    "range",
    "target",
    "loop, % of a step",
    "first checkpoint blocks, s",
    "later ones, s",
    "written after, s",
)
NOTE = (
    "Batches, masks, clipping and AdamW are included on both sides. Tokens/s are medians over rounds; "
    f"the ratio is that of the speeds, {contest.SPREAD}. A target between the two is a {contest.TIE}. "
    r"The loop's share is an upper limit: batches are made with nothing beside which that could be "
    r"hidden. \* marks a limit that was missed."
)


def mark(speeds: dict[str, list[float]], target: float) -> str:
    """What came of the target; nothing without the peer."""
    if "transformers" not in speeds:
        return ""
    return contest.verdict(contest.ratios(speeds["transformers"], speeds["plmcore"]), target)


def cells(result: dict) -> list[str]:
    ours = result["speeds"]["plmcore"]
    theirs = result["speeds"].get("transformers")
    share, first, later = result["overhead"], result["first"], result["later"]
    texts = [result["case"], f"{statistics.median(ours):,.0f}"]
    if theirs:
        found = contest.ratios(theirs, ours)  # speeds, not times
        texts += [
            f"{statistics.median(theirs):,.0f}",
            f"{found['ratio']:.2f}",
            f"{found['low']:.2f}–{found['high']:.2f}",
            f"{result['target']:.1f} {mark(result['speeds'], result['target'])}",
        ]
    else:
        texts += ["–", "–", "–", f"{result['target']:.1f}"]
    return [
        *texts,
        f"{100 * share:.2f}{'*' if share >= OVERHEAD else ''}",
        *(f"{s:.2f}{'*' if s >= BLOCKED else ''}" for s in (first, later)),
        f"{result['written']:.1f}",
    ]


def missed(result: dict) -> list[str]:
    """What did not reach its target."""
    found = []
    if mark(result["speeds"], result["target"]) == contest.MISSED:
        ratio = contest.ratios(result["speeds"]["transformers"], result["speeds"]["plmcore"])["ratio"]
        found.append(f"ratio {ratio:.2f}, {result['target']} wanted")
    if result["overhead"] >= OVERHEAD:
        found.append(f"the loop takes {100 * result['overhead']:.2f} % of a step")
    found += [
        f"the {key} checkpoint blocks {result[key]:.1f} s"
        for key in ("first", "later")
        if result[key] >= BLOCKED
    ]
    return [f"{result['case']}: {what}" for what in found]


def markdown(machine: str, results: list[dict]) -> str:
    parts = [f"{machine}. {NOTE}"]
    for threads in dict.fromkeys(r["threads"] for r in results):
        lines = [cells(r) for r in results if r["threads"] == threads]
        parts.append(f"### Pre-training, {contest.count_of(threads)}")
        table = "\n".join("| " + " | ".join(texts) + " |" for texts in (HEAD, ["---"] * len(HEAD), *lines))
        parts.append(table.replace("*", r"\*"))
    return "\n\n".join(parts)
