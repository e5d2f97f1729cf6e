"""docs/data.md names what there is."""

import pathlib

from plmcore import data

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "data.md"


def test_every_task_is_named():
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in data.TASKS if name not in text] == []
