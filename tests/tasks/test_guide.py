"""The Python of docs/fine-tuning.md runs."""

import pathlib
import re
import shutil

import pytest
import samples

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
