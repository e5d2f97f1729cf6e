"""beams.html: a traced search as a tree, step by step. beams.js draws what `data` gives it."""

from __future__ import annotations

import os
import pathlib
from typing import Any

from plmcore.files import page as pages
from plmcore.generate.trace import Node, PromptTrace, Trace

FATES = ("kept", "dropped", "finished")
BODY = """
<p class="kinds"><span class="kind kept">goes on</span><span class="kind finished">finished</span>
<span class="kind dropped">dropped</span>
<span class="kind chosen">on the way to the chosen result</span></p>
<div class="controls">
<label id="which" hidden>Prompt <select id="prompt"></select></label>
<button id="back" aria-label="one step back">&#8592;</button>
<input id="step" type="range" min="1" value="1" aria-label="step">
<button id="on" aria-label="one step on">&#8594;</button>
<output id="at" for="step"></output></div>
<div id="tree"></div>
<h2 id="looked"></h2><table id="candidates"></table>
<h2>Results</h2><table id="results"></table>
<noscript>The tree is drawn by the script of this page, which this browser does not run.</noscript>
"""


def write(path: str | os.PathLike[str], trace: Trace, title: str = "Search") -> None:
    pages.write(path, page(trace, title))


def page(trace: Trace, title: str = "Search") -> str:
    return pages.page(
        title,
        BODY + pages.embedded(data(trace), "search"),
        style=beside("beams.css"),
        script=beside("beams.js"),
    )


def data(trace: Trace) -> dict[str, Any]:
    """What the script reads.

    A node is [parent's place or -1, text, score, number of its fate, final score or null, group].
    """
    return {"kind": trace.kind, "beams": trace.beams, "prompts": [prompt(p) for p in trace.prompts]}


def prompt(trace: PromptTrace) -> dict[str, Any]:
    return {
        "text": trace.prompt_text,
        "steps": [[row(node) for node in nodes] for nodes in trace.steps],
        "results": [
            {"step": end.step, "place": end.place, "score": rounded(end.final_score), "text": text}
            for end, text in zip(trace.results, trace.result_texts)
        ],
    }


def row(node: Node) -> list[Any]:
    parent = -1 if node.parent is None else node.parent.place
    return [
        parent,
        node.text,
        rounded(node.score),
        FATES.index(node.fate),
        rounded(node.final_score),
        node.group,
    ]


def rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)


def beside(name: str) -> str:
    return pathlib.Path(__file__).with_name(name).read_text(encoding="utf-8")
