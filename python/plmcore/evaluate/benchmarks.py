"""Scores of benchmarks that are made of tasks: GLUE and decaNLP."""

from __future__ import annotations

from collections.abc import Mapping

from plmcore._core import ArgumentError

# task -> the metrics whose mean is its score
GLUE = {
    "cola": ("matthews",),
    "sst2": ("accuracy",),
    "mrpc": ("accuracy", "f1"),
    "stsb": ("pearson", "spearman"),
    "qqp": ("accuracy", "f1"),
    "mnli": ("accuracy", "accuracy_mismatched"),
    "qnli": ("accuracy",),
    "rte": ("accuracy",),
    "wnli": ("accuracy",),
}
# task -> its metric, all in points from 0 to 100 (McCann et al. 2018)
DECANLP = {
    "squad": "token F1",
    "iwslt": "BLEU",
    "cnn_dm": "mean of ROUGE-1, ROUGE-2 and ROUGE-L",
    "mnli": "exact match",
    "sst": "exact match",
    "qa_srl": "token F1",
    "qa_zre": "corpus F1",
    "woz": "exact match of the dialogue state",
    "wikisql": "exact match of the logical form",
    "mwsc": "exact match",
}


def glue(scores: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The points (0 to 100) of each task and `glue`, their mean. scores: task -> its metrics, as fractions.

    The mean is over the tasks that are there, and `tasks` says how many of the nine: papers often leave WNLI
    out. MNLI may have the matched set alone.
    """
    points: dict[str, float] = {}
    for task, values in scores.items():
        if task not in GLUE:
            raise ArgumentError(f"glue: there is no task {task!r}; one of {', '.join(GLUE)}")
        wanted = [m for m in GLUE[task] if m in values or m != "accuracy_mismatched"]
        if missing := [m for m in wanted if m not in values]:
            raise ArgumentError(
                f"glue: {task} needs {', '.join(wanted)}, got {', '.join(values) or 'nothing'}: "
                f"{missing[0]} is missing"
            )
        if far := [m for m in wanted if not -1 <= values[m] <= 1]:
            raise ArgumentError(f"glue: metrics are fractions, got {far[0]} = {values[far[0]]} of {task}")
        points[task] = 100 * sum(values[m] for m in wanted) / len(wanted)
    if not points:
        raise ArgumentError("glue: there are no scores")
    return {**points, "glue": sum(points.values()) / len(points), "tasks": len(points)}


def glue_table(scores: Mapping[str, Mapping[str, float]]) -> str:
    """The summary as lines of text: task, metrics, points."""
    points = glue(scores)
    lines = [f"{'task':<6} {'points':>6}  metrics"]
    for task in (t for t in GLUE if t in scores):
        metrics = ", ".join(f"{m} {100 * scores[task][m]:.1f}" for m in GLUE[task] if m in scores[task])
        lines.append(f"{task:<6} {points[task]:>6.1f}  {metrics}")
    left_out = [t for t in GLUE if t not in scores]
    note = f"without {', '.join(left_out)}" if left_out else "all nine tasks"
    return "\n".join([*lines, f"{'GLUE':<6} {points['glue']:>6.1f}  {note}"])


def decascore(scores: Mapping[str, float]) -> float:
    """The sum of the ten metrics of decaNLP, each in points from 0 to 100: at most 1000."""
    if wrong := set(DECANLP) ^ set(scores):
        raise ArgumentError(
            f"decascore: the ten tasks are {', '.join(DECANLP)}; missing or unknown: "
            f"{', '.join(sorted(wrong))}"
        )
    if far := [task for task, value in scores.items() if not 0 <= value <= 100]:
        raise ArgumentError(f"decascore: metrics are points from 0 to 100, got {far[0]} = {scores[far[0]]}")
    return float(sum(scores.values()))
