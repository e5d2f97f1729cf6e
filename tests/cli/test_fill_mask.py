import io
import json
import sys

import plmcore as plm
import pytest
from plmcore import cli

TEXTS = ["the cat sat", "on the mat and the dog ran", "far away"] * 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("fill_mask") / "model"
    tokenizer = plm.train_tokenizer(texts=TEXTS, kind="wordpiece", vocab_size=100, family="bert")
    config = dict(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, model_type="bert"
    )
    plm.seed(1)
    lm = plm.from_config(config, "masked-lm", vocab_size=tokenizer.vocab_size)
    lm.tokenizer = tokenizer
    lm.save(path)
    return str(path)


def answers(capsys, *arguments):
    code = cli.main(["fill-mask", *map(str, arguments)])
    out, err = capsys.readouterr()
    assert code == 0, err
    return out


def test_text(folder, capsys):
    found = plm.load(folder).fill_mask("the [MASK] sat", k=3)
    expected = "".join(f"{f['probability']:.4f}\t{f['token']}\t{f['text']}\n" for f in found)
    assert answers(capsys, folder, "the [MASK] sat", "--k", 3) == expected
    # A blank line between two masks.
    assert answers(capsys, folder, "[MASK] cat [MASK]", "--k", 2).count("\n") == 5


@pytest.mark.parametrize("how", ["file", "field", "standard input"])
def test_lines(folder, capsys, tmp_path, monkeypatch, how):
    lines = ["the [MASK] sat", "", "[MASK] cat [MASK]"]
    file, arguments = tmp_path / "lines.txt", []
    if how == "standard input":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    elif how == "field":
        file.write_text("".join(json.dumps({"body": line}) + "\n" for line in lines))
        arguments = [file, "--field", "body"]
    else:
        file.write_text("\n".join(lines))
        arguments = [file]
    records = [
        json.loads(line) for line in answers(capsys, folder, *arguments, "--json", "--k", 2).splitlines()
    ]
    lm = plm.load(folder)
    assert [r["text"] for r in records] == lines
    assert records[0]["masks"] == [lm.fill_mask(lines[0], 2)]
    assert records[1]["masks"] == [] and records[2]["masks"] == lm.fill_mask(lines[2], 2)


def test_rows_that_are_no_tokens(tmp_path, capsys):
    """A matrix that was filled up to a round number has ids that no tokenizer knows."""
    tokenizer = plm.train_tokenizer(texts=TEXTS, kind="wordpiece", vocab_size=100, family="bert")
    config = dict(
        hidden_size=12, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, model_type="bert"
    )
    lm = plm.from_config(dict(config, vocab_size=1000), "masked-lm")
    lm.tokenizer = tokenizer
    lm.save(tmp_path / "model")
    assert answers(capsys, tmp_path / "model", "the [MASK] sat", "--k", 3).count("\n") == 3


def test_errors(folder, capsys, tmp_path):
    for arguments, message in (
        ([folder, "no gap here"], "the text has no [MASK]: 'no gap here'"),
        ([folder, "nowhere.txt"], "there is no file 'nowhere.txt'"),
        ([tmp_path / "nowhere", "[MASK]"], "nowhere"),
    ):
        assert cli.main(["fill-mask", *map(str, arguments)]) == 1
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == 1 and err.startswith("plmcore fill-mask: ")


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit):
        cli.main(["fill-mask", "--help"])
    assert 'plmcore fill-mask bert-dir "Paris is the [MASK] of France."' in capsys.readouterr().out
