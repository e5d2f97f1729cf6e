"""The Python and the commands of docs/evaluation.md run."""

import gzip
import json
import pathlib
import re
import shlex

import plmcore as plm
import pytest
from plmcore import cli
from small_models import GPT2, MASKED, SEQ2SEQ, TEXT, sharp

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "evaluation.md"
pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="an installed copy has no docs")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """What the page's readers have."""
    monkeypatch.chdir(tmp_path)
    tokenizer = plm.tokenizers.train_tokenizer(texts=[TEXT], kind="byte-bpe", vocab_size=280)
    for name, config, head in (
        ("model-dir", dict(GPT2, n_positions=32), "causal-lm"),
        ("bert-dir", dict(MASKED["bert"], num_hidden_layers=5, num_attention_heads=3), "masked-lm"),
        ("classifier-dir", dict(MASKED["bert"], num_labels=2), "sequence-classification"),
        ("t5-dir", SEQ2SEQ["t5"], "seq2seq-lm"),
    ):
        sharp(config, head, tokenizer).save(name)
        tokenizer.save(name)
    pathlib.Path("test.tsv").write_text("the cat\tLABEL_1\nthe dog\tLABEL_0\n")
    pathlib.Path("test.txt").write_text(TEXT + "a question of the test set, as long as it may be")
    pathlib.Path("a.txt").write_text(TEXT)
    pathlib.Path("b.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    for name in ("test.de", "test.en"):
        pathlib.Path(name).write_text("the cat\nthe dog ran\n")
    for name in ("train.jsonl", "test.jsonl"):
        lines = (json.dumps({"question": f"{i}+1", "answer": str(i + 1)}) for i in range(9))
        pathlib.Path(name).write_text("\n".join(lines))


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def test_python(folder, capsys):
    names = {}
    for block in blocks("python"):
        exec(compile(block, str(GUIDE), "exec"), names)
    assert len(blocks("python")) == 8 and pathlib.Path("attention.html").exists()
    assert names["found"].found.tolist() == [True, False]
    assert names["found"].clean.tolist() == [1] and "GLUE     89.5  without cola" in capsys.readouterr().out


def test_commands(folder, capsys):
    commands = [line for block in blocks("sh") for line in block.splitlines() if line]
    assert len(commands) == 6
    for command in commands:
        words = shlex.split(command.replace("--stride 256", "--stride 8"), comments=True)
        assert words.pop(0) == "plmcore" and cli.main(words) == 0, (command, capsys.readouterr().err)
    assert len(pathlib.Path("predictions.jsonl").read_text().splitlines()) == 2
