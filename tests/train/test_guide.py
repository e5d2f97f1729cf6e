"""The commands and the Python of docs/training.md and docs/resuming.md run."""

import pathlib
import re
import shlex

import pytest
import small
from plmcore import cli
from plmcore.cli import demo

DOCS = pathlib.Path(__file__).parents[2] / "docs"
pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="an installed copy has no docs")

# What makes a command short: a small model of the family, and few steps.
SHORT = {
    "gpt2": ["model.n_layer=1", "model.n_embd=32", "model.n_head=2", "model.n_positions=32"],
    "bert": ["model.num_hidden_layers=1", "model.hidden_size=32", "model.num_attention_heads=2", "model.intermediate_size=64"],
    "t5": ["model.num_layers=1", "model.d_model=32", "model.num_heads=2", "model.d_ff=64", "model.d_kv=16"],
}  # fmt: skip
ALL = ["data.vocab=400", "data.length=32", "data.accumulate=1", "train.evaluate_batches=1"]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def run(command):
    words = shlex.split(command)
    assert words[:2] == ["plmcore", "pretrain"]
    if words[2] in SHORT:
        words += ["--steps", "2", *(x for change in [*SHORT[words[2]], *ALL] for x in ("--set", change))]
    assert cli.main(words[1:]) == 0, command
    out = pathlib.Path(words[words.index("--out") + 1])
    assert (out / "final" / "model.safetensors").exists()
    return out


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("book.txt").write_text(demo.manual()[:40_000])
    pathlib.Path("wiki").mkdir()
    pathlib.Path("wiki/a.txt").write_text(demo.manual()[:40_000])
    pathlib.Path("sst2.tsv").write_text("sentence\tlabel\n" + "a fine film\t1\na dull one\t0\n" * 20)
    pathlib.Path("topics.tsv").write_text("loops\tfor and while\nnames\tglobal\n" * 20)
    return tmp_path


def commands(page):
    """By block, lines that go on in the next one joined."""
    return [[c for c in block.replace("\\\n", " ").splitlines() if c.strip()] for block in blocks(page, "sh")]


@pytest.mark.parametrize("block", commands("training.md") if DOCS.exists() else [], ids=lambda b: b[0][:40])
def test_pre_training(folder, block):
    for command in block:
        run(command)


def test_resuming(folder):
    run("plmcore pretrain gpt2 --size tiny --text book.txt --out run")
    [[command], [longer]] = commands("resuming.md")
    assert run(command) == run(longer.replace("--steps 4000", "--steps 4")) == pathlib.Path("run")
    assert "extended = [{steps = 2}]" in pathlib.Path("run/config.toml").read_text()


def test_python(folder):
    names = dict(model=small.gpt2(), batches=small.Counting())
    for page in ("training.md", "resuming.md"):
        for block in blocks(page, "python"):
            exec(
                compile(block.replace("steps=1000", "steps=4").replace("save_every=100", "save_every=2"), page, "exec"),
                names,
            )
            names["optimizer"] = names["trainer"].optimizer
    assert names["trainer"].step == 4
