"""The frame that all pages share: head, style, escaping, and the file."""

from __future__ import annotations

import html
import json
import os
from typing import Any

from plmcore.files.whole import atomic_write

STYLE = """
:root { color-scheme: light dark }
:root { --ground: #fff; --ink: #222; --quiet: #666; --box: #f5f5f2; --line: #d5d5cf }
@media (prefers-color-scheme: dark) {
  :root { --ground: #16181b; --ink: #ddd; --quiet: #999; --box: #22252a; --line: #3a3e45 }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground) }
body { margin: 2rem auto; max-width: 1180px; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1rem; margin: 0 0 .3rem }
table { border-collapse: collapse } td { padding: .1rem 1.2rem .1rem 0; vertical-align: top }
svg text { font: 11px system-ui, sans-serif; fill: var(--quiet) }
pre { background: var(--box); padding: .8rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere }
"""
# The page may load nothing, from nowhere: what it needs stands in it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page(title: str, body: str, *, style: str = "", script: str = "") -> str:
    """A whole page. `body` is HTML; the script runs after it."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escaped(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f"<style>{STYLE}{style}</style></head><body>\n<h1>{escaped(title)}</h1>\n{body}"
        f"{f'<script>{script}</script>' if script else ''}</body></html>\n"
    )


def escaped(value: Any) -> str:
    return html.escape(str(value))


def embedded(data: Any, name: str) -> str:
    """Data for a page's script: JSON in an element with this id, in which no text can end the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace(
        "<", "\\u003c"
    )
    return f'<script type="application/json" id="{name}">{text}</script>\n'


def write(path: str | os.PathLike[str], text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode("utf-8", "replace"))
