"""The results as a table, and its place in benchmarks/README.md."""

from __future__ import annotations

import statistics

import contest

BEGIN, END = "<!-- benchmarks/corpus: begin -->", "<!-- benchmarks/corpus: end -->"
TARGET, RESIDENT = 0.95, 200  # of the library's rate; megabytes
LIBRARIES = {"t5": "sentencepiece"}  # others: tokenizers
HEAD = (
    "tokenizer, texts",
    "MB",
    "cores",
    "plmcore, MB/s",
    "library alone, MB/s",
    "ratio",
    "range",
    "target",
    "processor seconds",
    "peak memory, MB",
)
NOTE = (
    "plmcore goes from a file to a corpus on the disk; the library has the same texts in memory, "
    "encodes them with its own threads and forgets the ids. The ratio is that of the rates, "
    f"{contest.SPREAD}. A target between the two is a {contest.TIE}. Processor seconds: plmcore / library. "
    r"\* marks a limit that was missed."
)


def ratio(result: dict) -> dict[str, float]:
    return contest.ratios(result["times"]["plmcore"], result["times"]["library"])


def mark(result: dict) -> str:
    return contest.verdict(ratio(result), TARGET)


def cells(result: dict) -> list[str]:
    size, found = result["megabytes"], ratio(result)
    ours, theirs = (size / statistics.median(result["times"][side]) for side in ("plmcore", "library"))
    texts = "documents" if result["cut"] == "document" else "sentences"
    return [
        f"{result['family']} ({LIBRARIES.get(result['family'], 'tokenizers')}), {texts}",
        f"{size:.0f}",
        f"{result['cores']}",
        f"{ours:.2f}",
        f"{theirs:.2f}",
        f"{found['ratio']:.2f}",
        f"{found['low']:.2f}–{found['high']:.2f}",
        f"{TARGET} {mark(result)}",
        f"{result['cpu']['plmcore']:.1f} / {result['cpu']['library']:.1f}",
        f"{result['memory']:.0f}",
    ]


def batches(found: dict) -> str:
    return (
        f"Random batches from a corpus of {found['megabytes']:,} MB: opened and verified in "
        f"{found['opened']:.2f} s, {found['rate']:.0f} batches of 64 x 512 a second, "
        f"{found['resident']:.0f} MB resident at most{'' if found['resident'] < RESIDENT else '*'} "
        f"(target: below {RESIDENT}), {found['before']:.0f} MB of them before the corpus was opened."
    )


def missed(run: dict) -> list[str]:
    """What did not reach its target."""
    found = [
        f"{cells(r)[0]}, {r['megabytes']:.0f} MB: ratio {ratio(r)['ratio']:.2f}, {TARGET} wanted"
        for r in run["results"]
        if mark(r) == contest.MISSED
    ]
    if "batches" in run and run["batches"]["resident"] >= RESIDENT:
        found.append(f"random batches: {run['batches']['resident']:.0f} MB resident, {RESIDENT} allowed")
    return found


def markdown(runs: list[dict]) -> str:
    machines = " / ".join(dict.fromkeys(run["machine"] for run in runs))
    parts = [f"{machines}. {NOTE}"]
    if lines := [cells(r) for run in runs for r in run["results"]]:
        table = "\n".join("| " + " | ".join(texts) + " |" for texts in (HEAD, ["---"] * len(HEAD), *lines))
        parts.append(table.replace("*", r"\*"))
    parts += [batches(run["batches"]).replace("*", r"\*") for run in runs if "batches" in run]
    return "\n\n".join(parts)
