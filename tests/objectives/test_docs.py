"""The page's examples run."""

import pathlib
import re
import shlex

from plmcore import cli, objectives

PAGE = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "objectives.md").read_text(encoding="utf-8")


def test_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "\n\n".join(f"Chapter {i} begins here. It tells of {i * 7} things. Then it ends." * 4 for i in range(60))
    (tmp_path / "book.txt").write_text(text)
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {}
    exec(code, names)
    rows, width = names["batch"]["input_ids"].shape
    assert rows == 3 and 55 < width <= 64 and 4 < names["loss"].item() < 8


def test_commands(capsys):
    commands = re.findall(r"^\$ plmcore (.*)$", PAGE, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        if "t5-small" not in command:  # a directory that the reader has
            assert cli.main(shlex.split(command)) == 0 and "predict" in capsys.readouterr().out


def test_every_objective_has_a_line():
    table = re.findall(r"^\| `([a-z0-9-]+)` \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert [name for name, _ in table] == list(objectives.NAMES)
    assert all(hasattr(objectives, cls) for _, cls in table)
