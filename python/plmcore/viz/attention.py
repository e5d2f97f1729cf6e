"""attention.html: the attention maps of a text, every head of every layer. attention.js draws what `data`
gives it.
"""

from __future__ import annotations

import base64
import os
import pathlib
from typing import Any

import numpy as np

from plmcore._core import ArgumentError
from plmcore.files import page as pages
from plmcore.language_model.attention import Attention

MOST = 2**25  # weights of a page, a byte each
KINDS = {
    "attentions": "attention",
    "encoder_attentions": "in the source",
    "decoder_attentions": "in the target",
    "cross_attentions": "from target to source",
}
BODY = """
<div class="controls"><label id="which" hidden>Attention <select id="kind"></select></label>
<label>Layer <select id="layer"></select></label><label>Head <select id="head"></select></label>
<output id="value"></output></div>
<div class="both"><div><h2>All heads</h2><div id="overview"></div>
<p class="hint">Rows are layers, columns are heads. Click one.</p></div>
<div><h2 id="shown"></h2><div id="map"></div>
<p class="hint">A row is a token that looks, a column one that is looked at; each row adds up to 1.</p></div>
</div>
<noscript>The maps are drawn by the script of this page, which this browser does not run.</noscript>
"""


def write(path: str | os.PathLike[str], found: Attention) -> None:
    pages.write(path, page(found))


def page(found: Attention) -> str:
    size = sum(m.weights.size for m in found.maps.values())
    if size > MOST:
        raise ArgumentError(
            f"attention: {size:,} weights are too many for a page, at most {MOST:,}; pass a shorter text, or "
            f"layers=[...]"
        )
    body = BODY + pages.embedded(data(found), "attention")
    return pages.page(found.title, body, style=_beside("attention.css"), script=_beside("attention.js"))


def data(found: Attention) -> list[dict[str, Any]]:
    """What the script reads: weights as bytes, 255 for 1."""
    return [
        {
            "name": KINDS[kind],
            "rows": m.rows,
            "columns": m.columns,
            "layers": m.layers,
            "heads": m.weights.shape[1],
            "weights": base64.b64encode(
                np.rint(np.clip(m.weights, 0, 1) * 255).astype(np.uint8).tobytes()
            ).decode(),
        }
        for kind, m in found.maps.items()
    ]


def _beside(name: str) -> str:
    return pathlib.Path(__file__).with_name(name).read_text(encoding="utf-8")
