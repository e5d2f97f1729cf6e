"""The examples of docs/data.md run, and say what comes out."""

import gzip
import pathlib
import re
import shlex

import plmcore as plm
import pytest
from plmcore import cli, data

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "texts/a.txt": "".join(f"The ship number {k} sails. It comes back on day {k * k}.\n\n" for k in range(200)),
        "glue/SST-2/train.tsv": "sentence\tlabel\nhide new secretions from the parental units \t0\n",
        "mail/train.tsv": "ham\tHello\nspam\tBuy\n",
    }.items():
        pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(name).write_text(content)


def test_examples(folder):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "data.md").read_text(), re.DOTALL)
    assert len(blocks) == 5
    values = {}
    for block in blocks:
        exec(block, values)
    assert len(values["corpus"]) == 200 and len(values["corpus"].sentences) == 401
    assert values["batches"][1000]["input_ids"].shape == (4, 32)
    assert values["record"] == {"text": "hide new secretions from the parental units ", "label": 0}
    assert list(values["spam"].read("mail", "train")) == [{"text": "Hello", "label": 0}, {"text": "Buy", "label": 1}]


def test_commands(folder, capsys):
    plm.train_tokenizer("texts", kind="wordpiece", vocab_size=200, out="my-tokenizer")
    pathlib.Path("more.jsonl").write_text('{"text": "One more."}\n')
    pathlib.Path("wiki.txt.gz").write_bytes(gzip.compress(b"And one.\n"))
    commands = re.findall(r"```bash\npython -m plmcore (.*?)\n```", (DOCS / "data.md").read_text())
    assert len(commands) == 2
    for command in commands:
        assert cli.main([*shlex.split(command), "--overwrite", "--batch-size", "8"]) == 0  # the text is short
    first, second, batches = capsys.readouterr().out.splitlines()
    assert "202 documents" in first and "200 documents" in second and batches.startswith("masked-lm: ")


def test_every_task_is_named():
    text = (DOCS / "data.md").read_text()
    assert [name for name in data.TASKS if name not in text] == []
    assert plm.data is data
