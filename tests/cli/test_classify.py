import io
import json
import sys

import plmcore as plm
import pytest
from plmcore import cli
from plmcore.cli import classify

TEXTS = ["the cat sat", "on the mat and the dog ran", "far away", "the cat", "the dog"] * 3


def made(path, **changes):
    tokenizer = plm.train_tokenizer(texts=TEXTS, kind="wordpiece", vocab_size=100, family="bert")
    config = dict(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, model_type="bert"
    )
    plm.seed(1)
    config |= dict(vocab_size=tokenizer.vocab_size, **changes)
    lm = plm.from_config(config, "sequence-classification")
    lm.tokenizer = tokenizer
    lm.save(path)
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    labels = {"0": "bad", "1": "middling", "2": "good"}
    return made(tmp_path_factory.mktemp("classify") / "model", num_labels=3, id2label=labels)


def answers(capsys, *arguments):
    code = cli.main(["classify", *map(str, arguments)])
    out, err = capsys.readouterr()
    assert code == 0, err
    return out.splitlines()


def test_texts(folder, capsys):
    found = plm.load(folder).classify(TEXTS[:2])
    expected = [f"{f['label']}\t{f['probability']:.4f}\t{text}" for f, text in zip(found, TEXTS)]
    assert answers(capsys, folder, *TEXTS[:2]) == expected


@pytest.mark.parametrize("how", ["file", "field", "standard input"])
def test_lines(folder, capsys, tmp_path, monkeypatch, how):
    monkeypatch.setattr(classify, "BATCHES", 2)  # several pieces
    lines = [*TEXTS[:4], "", *TEXTS[4:]]
    file, arguments = tmp_path / "lines.txt", []
    if how == "standard input":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    elif how == "field":
        file.write_text("".join(json.dumps({"body": line}) + "\n" for line in lines))
        arguments = [file, "--field", "body"]
    else:
        file.write_text("\n".join(lines))
        arguments = [file]
    records = [json.loads(line) for line in answers(capsys, folder, *arguments, "--json", "--batch", 2)]
    assert [r["text"] for r in records] == lines and records[4] == {"text": "", "label": None}
    for record, found in zip(records[:4] + records[5:], plm.load(folder).classify(TEXTS), strict=True):
        assert record["label"] == found["label"]
        assert record["probabilities"] == pytest.approx(found["probabilities"], abs=1e-5)
    if how == "file":
        assert answers(capsys, folder, file)[4] == ""


def test_pairs(folder, capsys, tmp_path):
    expected = plm.load(folder).classify(["the cat", "the dog"], ["sat", "ran far"])
    file, objects = tmp_path / "pairs.tsv", tmp_path / "pairs.jsonl"
    file.write_text("the cat\tsat\nthe dog\tran far\n")
    objects.write_text('{"a": "the cat", "b": "sat"}\n{"a": "the dog", "b": "ran far"}\n')
    for arguments in ([file, "--pairs"], [objects, "--field", "a", "--pair-field", "b"]):
        records = [json.loads(line) for line in answers(capsys, folder, *arguments, "--json")]
        assert [r["pair"] for r in records] == ["sat", "ran far"]
        assert [r["probability"] for r in records] == pytest.approx(
            [e["probability"] for e in expected], abs=1e-5
        )


def test_a_number(capsys, tmp_path):
    folder = made(tmp_path / "model", num_labels=1)
    value = plm.load(folder).classify("the cat")["value"]
    assert answers(capsys, folder, "the cat") == [f"{value:.4f}\tthe cat"]


def test_errors(folder, capsys, tmp_path):
    lm = plm.load(folder, head="base")
    lm.save(tmp_path / "base")
    for arguments, message in (
        ([tmp_path / "base", "a text"], "this model has the head base; fine-tune it"),
        (
            [folder, "one text", "--pairs"],
            "text 1: --pairs needs two texts with a tab between them, got 'one text'",
        ),
        ([folder, "nowhere.txt"], "there is no file 'nowhere.txt'"),
        ([folder, "x", "--pair-field", "b"], "--pair-field needs --field"),
        ([tmp_path / "nowhere", "a text"], "nowhere"),
    ):
        assert cli.main(["classify", *map(str, arguments)]) == 1
        err = capsys.readouterr().err
        assert message in err and err.count("\n") == 1 and err.startswith("plmcore classify: ")


def test_help_has_examples(capsys):
    with pytest.raises(SystemExit):
        cli.main(["classify", "--help"])
    assert 'plmcore classify run/final "a lovely film"' in capsys.readouterr().out
