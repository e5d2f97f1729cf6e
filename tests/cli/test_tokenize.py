import io
import sys

import numpy as np
import plmcore as plm
import pytest
from plmcore import cli


@pytest.fixture
def text(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("the cat sat on the mat\nthe dog sat on the cat\n" * 50)
    return file


def test_train_and_encode(text, tmp_path, capsys, monkeypatch):
    out = str(tmp_path / "out")
    assert (
        cli.main(
            [
                "tokenize",
                "train",
                str(text),
                "--kind",
                "wordpiece",
                "--vocab-size",
                "60",
                "--special",
                "<x>",
                "--out",
                out,
            ]
        )
        == 0
    )
    printed, errors = capsys.readouterr()
    assert "wordpiece of the family bert" in printed and errors == ""  # no progress line: this is no terminal
    tokenizer = plm.load_tokenizer(out)
    assert cli.main(["tokenize", "encode", out, "--text", "The cat <x>", "--text", "dog", "--tokens"]) == 0
    assert capsys.readouterr().out == "[CLS] the cat <x> [SEP]\n[CLS] dog [SEP]\n"
    assert cli.main(["tokenize", "encode", out, str(text), "--bare"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 100 and lines[0].split() == [
        str(i) for i in tokenizer.encode_ids(["the cat sat on the mat"])[0]
    ]
    monkeypatch.setattr(sys, "stdin", type("In", (), {"buffer": io.BytesIO(b"cat\r\n\nmat")}))
    assert cli.main(["tokenize", "encode", out, "--bare", "--tokens"]) == 0
    assert capsys.readouterr().out == "cat\n\nmat\n"


@pytest.mark.parametrize("kind", ["bpe", "byte-bpe", "characters", "words"])
def test_other_kinds(text, tmp_path, kind):
    arguments = [
        "tokenize",
        "train",
        str(text),
        "--kind",
        kind,
        "--vocab-size",
        "300",
        "--min-count",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    assert cli.main(arguments) == 0
    tokenizer = plm.load_tokenizer(tmp_path / "out")
    assert tokenizer.kind == kind and tokenizer.decode(tokenizer.encode_ids(["the cat"])[0]) == "the cat"
    assert np.array_equal(
        tokenizer.encode_ids(["the cat"])[0], plm.load_tokenizer(tmp_path / "out").encode_ids(["the cat"])[0]
    )


def test_errors_are_one_line(text, tmp_path, capsys):
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"ok\n\xff\n")
    out = str(tmp_path / "out")
    cli.main(["tokenize", "train", str(text), "--kind", "characters", "--out", out])
    capsys.readouterr()
    for arguments, message in (
        (["train", str(tmp_path / "no"), "--out", out], "there is no file"),
        (["train", str(bad), "--out", out], "line 2, byte 3: 0xff is not UTF-8"),
        (["train", str(text), "--vocab-size", "10", "--out", out], "vocab_size=10 is too small"),
        (["encode", str(tmp_path / "no"), "--text", "x"], "has no tokenizer.json"),
        (
            ["encode", out, str(bad)],
            "line 2, byte 3: 0xff is not UTF-8 (invalid start byte); the option --errors",
        ),
    ):
        assert cli.main(["tokenize", *arguments]) == 1
        printed = capsys.readouterr().err
        assert message in printed and printed.count("\n") == 1 and printed.startswith("plmcore tokenize: ")
    assert (
        cli.main(["tokenize", "train", str(bad), "--kind", "words", "--errors", "replace", "--out", out]) == 0
    )
    with pytest.raises(SystemExit):
        cli.main(["tokenize"])
