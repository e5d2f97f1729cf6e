"""The results as Markdown, between the markers of a page."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence

from learning import sentences, transfer, translation
from learning.experiments import EXPERIMENTS, Found

BEGIN, END = "<!-- benchmarks/learning: begin -->", "<!-- benchmarks/learning: end -->"
Results = dict[str, dict[str, Found]]  # experiment -> seed -> what was found


def runs_of(results: Results, group: str) -> dict[str, list[Found]]:
    """The runs of each experiment of a group that has some, in the order of the experiments."""
    names = [name for name, e in EXPERIMENTS.items() if e.group == group and results.get(name)]
    return {name: list(results[name].values()) for name in names}


def rows(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *lines))


def each(runs: Sequence[Found], key: str, form: str = ".4f") -> str:
    """The value of every seed."""
    return ", ".join(format(r[key], form) for r in runs)


def at_most(runs: Iterable[Found]) -> str:
    """Where the processor's time was not taken, that of the clock for every thread stands for it."""
    return "" if all("processor" in r for r in runs) else "at most "


def processor(runs: Iterable[Found]) -> float:
    """Seconds of all threads for all seeds, and what these share once."""
    runs = list(runs)
    own = sum(r.get("processor", r["seconds"] * r["threads"]) for r in runs)
    return own + max(r.get("shared processor", 0.0) for r in runs)


def minutes(runs: Sequence[Found]) -> str:
    """Of the processor, for one seed, with its part of what the seeds share."""
    return f"{at_most(runs)}{processor(runs) / len(runs) / 60:.1f}"


def mark(name: str, runs: Sequence[Found]) -> str:
    return "yes" if all(EXPERIMENTS[name].holds(r) for r in runs) else "**missed**"


def markov(found: dict[str, list[Found]]) -> str:
    lines = []
    for name, runs in found.items():
        pairs = "Bayes" in runs[0]
        share = ", ".join(f"{r['accuracy']:.3f} of {r['Bayes']:.3f}" for r in runs) if pairs else "–"
        above = ", ".join(f"{100 * r['above']:+.2f} %" for r in runs)
        lines.append(
            (name, each(runs, "loss"), each(runs, "optimum"), above, share, mark(name, runs), minutes(runs))
        )
    return rows(
        ("objective", "loss", "best possible", "above it", "accuracy", "holds", "processor minutes"), lines
    )


def task_table(found: dict[str, list[Found]]) -> str:
    lines = []
    for name, runs in found.items():
        for task in transfer.TASKS:
            pre, scratch = (
                [100 * r[f"{task}, {start}"] for r in runs] for start in ("pre-trained", "from scratch")
            )
            gain = statistics.mean(pre) - statistics.mean(scratch)
            better = all(a > b for a, b in zip(pre, scratch, strict=True))
            shown = (", ".join(f"{x:.1f}" for x in values) for values in (pre, scratch))
            lines.append(
                (
                    name.partition(", ")[2],
                    task,
                    *shown,
                    f"{gain:+.1f}",
                    "yes" if better else "**missed**",
                    minutes(runs),
                )
            )
    return rows(
        (
            "model",
            "task",
            "pre-trained, %",
            "from scratch, %",
            "gain",
            "better with every seed",
            "processor minutes",
        ),
        lines,
    )


def single(found: dict[str, list[Found]], key: str) -> str:
    lines = [
        (name, each(runs, key), EXPERIMENTS[name].target, mark(name, runs), minutes(runs))
        for name, runs in found.items()
    ]
    return rows(("experiment", key, "expected", "holds", "processor minutes"), lines)


def networks(found: dict[str, list[Found]]) -> str:
    """A line for each recurrent network of an experiment."""
    lines = []
    for name, runs in found.items():
        for network in translation.NETWORKS:
            loss = each(runs, f"{network}, loss", ".3f")
            lines.append((network, each(runs, network, ".1f"), loss, mark(name, runs), minutes(runs)))
    return rows(
        ("network", "BLEU", "held-out loss", "LSTM < GRU < Bahdanau", "processor minutes of all"), lines
    )


def columns(found: dict[str, list[Found]], **keys: str) -> str:
    """A column for each key, with its form."""
    lines = [
        (name, *(each(runs, key, form) for key, form in keys.items()), EXPERIMENTS[name].target,
         mark(name, runs), minutes(runs))
        for name, runs in found.items()
    ]  # fmt: skip
    return rows(("experiment", *keys, "expected", "holds", "processor minutes"), lines)


def starts(found: dict[str, list[Found]]) -> str:
    """A line for each start of a convolutional network."""
    lines = []
    for name, runs in found.items():
        for start in sentences.STARTS:
            values = ", ".join(f"{100 * r[start]:.1f}" for r in runs)
            mean = f"{100 * statistics.mean(r[start] for r in runs):.1f}"
            lines.append((start, values, mean, mark(name, runs), minutes(runs)))
    return rows(
        ("embeddings", "accuracy, %", "mean", "GloVe above random", "processor minutes of all"), lines
    )


SECTIONS = (
    ("shakespeare", "Tiny Shakespeare, nanoGPT's setting", lambda f: single(f, "validation loss")),
    ("markov", "Markov chain of 20 states", markov),
    ("copying", "Strings of 10 to 20 symbols, the Transformer", lambda f: single(f, "exact")),
    ("reversing", "Strings of 20 symbols turned round, a recurrent network", lambda f: single(f, "exact")),
    ("transfer", "WikiText-2, then a task", task_table),
    (
        "penn",
        "Penn Treebank, two LSTMs of 200, 13 epochs",
        lambda f: single(f, "validation perplexity"),
    ),
    (
        "directions",
        "Penn Treebank, a biLM, one epoch: perplexities",
        lambda f: columns(f, forward=".1f", backward=".1f"),
    ),
    (
        "contextual",
        "500 labelled sentences, layers beside GloVe: accuracies",
        lambda f: columns(f, **{"with": ".1%", "without": ".1%"}),
    ),
    (
        "cross-view",
        "Chunks of CoNLL-2003, 100 labelled and 10,000 plain sentences, F1",
        lambda f: columns(
            f, **dict.fromkeys(("supervised, half the steps", "supervised", "cross-view"), ".1f")
        ),
    ),
    (
        "ulmfit",
        "IMDb with 500 labels, accuracy of ULMFiT above that from scratch",
        lambda f: columns(f, **{"pre-trained": ".4f", "from scratch": ".4f", "gain": "+.4f"}),
    ),
    (
        "memories",
        "Tiny Shakespeare, characters, bits per character",
        lambda f: columns(f, **{"memory 256": ".3f", "memory 64": ".3f", "without": ".3f", "sliding": ".3f"}),
    ),
    (
        "clusters",
        "WikiText-2, 10,000 words, perplexity",
        lambda f: columns(f, adaptive=".1f", full=".1f", worse="+.2%"),
    ),
    (
        "fragments",
        "Multi30k, German to English, 1,000 pairs",
        lambda f: columns(f, **{"BLEU, pre-trained": ".1f", "BLEU, from scratch": ".1f"}),
    ),
    (
        "summaries",
        "SciTLDR, one-line summaries",
        lambda f: columns(
            f, **{f"ROUGE-L, {kind}": ".1f" for kind in ("pre-trained", "from scratch", "first sentence")}
        ),
    ),
    (
        "cloze",
        "SST-2, 100 labelled sentences, accuracy",
        lambda f: columns(f, **{"cloze": ".1%", "linear head": ".1%"}),
    ),
    ("convolution", "SST-2, Kim's convolutional network", starts),
    ("translation", "Multi30k, German to English", lambda f: single(f, "BLEU")),
    ("recurrent", "Multi30k, recurrent networks", networks),
)


def _missing(name: str, runs: dict[str, Found]) -> str:
    """The experiment, or its seeds, that have no result; nothing where all have."""
    seeds = [str(seed) for seed in EXPERIMENTS[name].seeds if str(seed) not in runs]
    if not seeds:
        return ""
    return f"{name}, seed {' and '.join(seeds)}" if runs else name


def _missed(name: str, runs: dict[str, Found]) -> str:
    """The experiment, with its seeds, that has a result short of its target; nothing where all hold."""
    seeds = [seed for seed, found in runs.items() if not EXPERIMENTS[name].holds(found)]
    return f"{name}, seed {' and '.join(seeds)}, expected: {EXPERIMENTS[name].target}" if seeds else ""


def markdown(results: Results) -> str:
    parts = []
    for group, title, make in SECTIONS:
        if found := runs_of(results, group):
            parts += [f"### {title}", make(found)]
    machines = sorted(
        {f"{r['machine']}, {r['threads']} threads" for runs in results.values() for r in runs.values()}
    )
    missed, waiting = ([f(name, results.get(name, {})) for name in EXPERIMENTS] for f in (_missed, _missing))
    daily = [list(runs.values()) for name, runs in results.items() if not EXPERIMENTS[name].nightly]
    parts.append(
        "Processor minutes are those of one seed, of all threads; all runs above but the nightly take "
        f"{at_most(itertools.chain(*daily))}{sum(map(processor, daily)) / 60:.0f} of them. Machines: "
        f"{'; '.join(machines)}."
    )
    if any(missed):
        parts.append(f"**Missed:** {'; '.join(filter(None, missed))}.")
    if any(waiting):
        parts.append(f"Without a stored result: {'; '.join(filter(None, waiting))}.")
    return "\n\n".join(parts)
