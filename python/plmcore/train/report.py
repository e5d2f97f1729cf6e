"""report.html: the curves of a run on one page that needs nothing else;
loss.svg: the curve of its loss as a picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from plmcore.files import page as pages

# Title of a chart -> its curves as (key of a metrics line, name, colour)
CHARTS = {
    "Loss": [("loss", "training", "#3b6ea8"), ("eval_loss", "held out", "#c0582b")],
    "Held-out perplexity": [("eval_perplexity", "held out", "#c0582b")],
    "Learning rate": [("lr", "learning rate", "#5a7d3a")],
    "Norm of the gradient": [("norm", "before clipping", "#7a5195")],
    "Tokens per second": [("tokens_per_second", "training", "#3b6ea8")],
}
COLOURS = ("#c0582b", "#3b6ea8", "#5a7d3a", "#7a5195", "#a8803b")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 240, 64, 12, 12, 28
MOST_POINTS = 1000

STYLE = """
td:first-child { color: var(--quiet) }
.charts { display: flex; flex-wrap: wrap; gap: 1.5rem; margin: 1.5rem 0 } .charts > div { flex: 1 1 520px }
svg { width: 100%; height: auto }
.key { margin-right: 1rem }
.key::before { content: ""; display: inline-block; width: .8em; height: .25em; margin-right: .4em }
.key::before { vertical-align: middle; background: var(--c) }
"""


def page(title: str, facts: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> str:
    """The whole page.

    `facts` is the table at its head; of the samples among the metrics the first and the last ones are shown.
    """
    rows = "".join(
        f"<tr><td>{pages.escaped(k)}</td><td>{pages.escaped(v)}</td></tr>" for k, v in facts.items()
    )
    charts = "".join(
        filter(None, (chart(name, curves, metrics) for name, curves in charts_of(metrics).items()))
    )
    samples = [(m["step"], m["sample"]) for m in metrics if "sample" in m]
    samples = samples[:1] + samples[1:][-3:]
    shown = "".join(
        f"<h2>Sample after step {step:,}</h2><pre>{pages.escaped(text)}</pre>" for step, text in samples
    )
    return pages.page(
        title, f'<table>{rows}</table>\n<div class="charts">{charts}</div>\n{shown}', style=STYLE
    )


def charts_of(metrics: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[str, str, str]]]:
    """CHARTS, then one for the losses of several tasks, and one for each other number of evaluations."""
    known = {key for curves in CHARTS.values() for key, *_ in curves}
    found = [k for m in metrics for k, v in m.items() if k.startswith("eval_") and isinstance(v, int | float)]
    names = {key: key.removeprefix("eval_").replace("_", " ") for key in found if key not in known}
    losses = [(key, name) for key, name in names.items() if key.endswith("_loss")]
    charts = dict(CHARTS)
    if losses:
        colours = [COLOURS[i % len(COLOURS)] for i in range(len(losses))]
        charts["Held-out loss by task"] = [(*pair, colour) for pair, colour in zip(losses, colours)]
    return charts | {
        f"Held-out {n}": [(k, "held out", COLOURS[0])] for k, n in names.items() if not k.endswith("_loss")
    }


def chart(title: str, curves: Sequence[tuple[str, str, str]], metrics: Sequence[Mapping[str, Any]]) -> str:
    """One chart as HTML with an inline SVG; empty when no line of the metrics has its values."""
    series = series_of(curves, metrics)
    if not series:
        return ""
    keys = "".join(
        f'<span class="key" style="--c:{colour}">{pages.escaped(name)}, last {number(p[-1][1])}</span>'
        for name, colour, p in series
    )
    return (
        f'<div><h2>{pages.escaped(title)}</h2><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{pages.escaped(title)}">'
        f"{drawn(series)}</svg><div>{keys}</div></div>\n"
    )


def picture(metrics: Sequence[Mapping[str, Any]], title: str = "Loss") -> str:
    """The chart of this title as an SVG file of its own, with a key and a white ground.

    Empty curves are left out.
    """
    series = series_of(charts_of(metrics)[title], metrics)
    keys = "".join(
        f'<text x="{WIDTH - RIGHT - 8}" y="{TOP + 18 + 18 * i}" text-anchor="end" '
        f'fill="{colour}">{pages.escaped(name)}, last {number(p[-1][1])}</text>'
        for i, (name, colour, p) in enumerate(series)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="sans-serif" font-size="12">'
        f'<title>{pages.escaped(title)} by step</title><rect width="100%" height="100%" '
        f'fill="#fff"/>{drawn(series) if series else ""}{keys}</svg>\n'
    )


Series = list[tuple[str, str, list[tuple[int, float]]]]  # name, colour, (step, value) of each curve


def series_of(curves: Sequence[tuple[str, str, str]], metrics: Sequence[Mapping[str, Any]]) -> Series:
    series = []
    for key, name, colour in curves:
        points = [(m["step"], m[key]) for m in metrics if m.get(key) is not None]
        if points:
            series.append((name, colour, thinned(points)))
    return series


def drawn(series: Series) -> str:
    """Axes and curves, as what stands inside an SVG of WIDTH x HEIGHT."""
    every = [point for *_, points in series for point in points]
    x_axis, y_axis = (
        Axis([x for x, _ in every], WIDTH - LEFT - RIGHT),
        Axis([y for _, y in every], HEIGHT - TOP - BOTTOM),
    )
    parts = []
    for value in y_axis.ticks():
        y = HEIGHT - BOTTOM - y_axis.place(value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#8883" fill="none"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{number(value)}</text>')
    for value in x_axis.ticks():
        x = LEFT + x_axis.place(value)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{number(value)}</text>')
    for _, colour, points in series:
        path = " ".join(
            f"{LEFT + x_axis.place(x):.1f},{HEIGHT - BOTTOM - y_axis.place(y):.1f}" for x, y in points
        )
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        if len(points) == 1:
            parts.append(
                f'<circle cx="{path.partition(",")[0]}" cy="{path.partition(",")[2]}" r="3" fill="{colour}"/>'
            )
    return "".join(parts)


class Axis:
    """Values from the least to the greatest over `length` points."""

    def __init__(self, values: Sequence[float], length: float):
        self.low, self.high, self.length = min(values), max(values), length
        if self.high == self.low:
            self.low, self.high = self.low - (abs(self.low) or 1) / 2, self.high + (abs(self.high) or 1) / 2

    def place(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low) * self.length

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers inside the range."""
        rough = (self.high - self.low) / about
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [step * i for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def thinned(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """At most MOST_POINTS, each the mean of its neighbours."""
    if len(points) <= MOST_POINTS:
        return points
    width = math.ceil(len(points) / MOST_POINTS)
    groups = [points[i : i + width] for i in range(0, len(points), width)]
    return [(g[-1][0], sum(y for _, y in g) / len(g)) for g in groups]


def number(value: float) -> str:
    """Short: 12,000, 0.25, 3e-05."""
    if value and not 1e-3 <= abs(value) < 1e7:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
