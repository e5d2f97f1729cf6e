"""docs/objectives.md names what there is."""

import pathlib
import re

from plmcore import objectives

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "objectives.md").read_text(encoding="utf-8")


def test_every_objective_has_a_line():
    table = re.findall(r"^\| `([a-z0-9-]+)` \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert [name for name, _ in table] == list(objectives.NAMES)
    assert all(hasattr(objectives, cls) for _, cls in table)
