"""The Python and the command of docs/fine-tuning.md run."""

import pathlib
import re
import shlex
import shutil

import pytest
import samples
from plmcore import cli

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "fine-tuning.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="an installed copy has no docs")
def test_guide(directory, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(directory("bert"), "bert-dir")
    table("train.tsv", samples.reviews(64)), table("dev.tsv", samples.reviews(32, 64))
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    assert len(blocks) == 2
    assert names["again"].head == "sequence-classification" and len(names["accuracy"]) == 3


@pytest.mark.skipif(not GUIDE.exists(), reason="an installed copy has no docs")
def test_commands(directory, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(directory("bert"), "bert-dir")
    for i, name in enumerate(("train", "dev", "test")):
        table(f"{name}.tsv", samples.reviews(16, 16 * i))
    pathlib.Path("lines.txt").write_text("a lovely film\n\na waste of time\n")
    blocks = re.findall(r"```sh\n(.*?)\n```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    commands = [line.partition(" > ")[0] for block in blocks for line in block.split("\n")]
    assert len(commands) == 5
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "plmcore" and cli.main(arguments) == 0
    assert {p.name for p in pathlib.Path("run").iterdir()} >= {
        "final",
        "scores.json",
        "dev-predictions.jsonl",
        "test-predictions.jsonl",
        "report.html",
    }
