import gzip
import io
import json
import sys

import numpy as np
import plmcore as plm
import pytest
from plmcore import cli
from plmcore.cli import embed

TEXTS = ["the cat sat", "on the mat and the dog ran", "", "far away", "the cat sat"] * 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("embed")
    tokenizer = plm.train_tokenizer(texts=TEXTS, kind="wordpiece", vocab_size=100, family="bert")
    config = dict(hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16)
    lm = plm.from_config(dict(config, model_type="bert"), vocab_size=tokenizer.vocab_size)
    lm.tokenizer = tokenizer
    lm.save(path / "model")
    (path / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    (path / "texts.txt.gz").write_bytes(gzip.compress((path / "texts.txt").read_bytes()))
    (path / "texts.jsonl").write_text(
        "".join(json.dumps({"id": i, "body": t}) + "\n" for i, t in enumerate(TEXTS))
    )
    return path


@pytest.fixture(scope="module")
def expected(folder):
    return plm.load(folder / "model").encode(TEXTS)


@pytest.mark.parametrize(
    "name, options",
    [("texts.txt", []), ("texts.txt.gz", ["--batch", "2"]), ("texts.jsonl", ["--field", "body"])],
)
def test_npy(folder, expected, name, options, monkeypatch):
    monkeypatch.setattr(embed, "BATCHES", 2)  # several pieces
    out = folder / "vectors.npy"
    assert cli.main(["embed", str(folder / "model"), str(folder / name), "--out", str(out), *options]) == 0
    found = np.load(out)
    assert found.dtype == np.float32 and found.shape == (len(TEXTS), 12)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_jsonl_of_standard_input(folder, expected, monkeypatch, capfdbinary):
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO("".join(f"{t}\r\n" for t in TEXTS).encode()))
    )
    assert cli.main(["embed", str(folder / "model")]) == 0
    records = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [record["text"] for record in records] == TEXTS
    np.testing.assert_allclose(
        np.array([record["vector"] for record in records], np.float32), expected, atol=1e-5
    )


def test_the_digits_are_those_of_the_vector(folder):
    vector = np.array([[0.1, -1e-9, 3.4028235e38, 1 / 3]], np.float32)
    out = io.BytesIO()
    embed.write_jsonl(out, iter([(["é"], vector)]))
    assert out.getvalue().decode() == '{"text": "é", "vector": [0.1, -1e-09, 3.4028235e+38, 0.33333334]}\n'
    assert np.array_equal(np.array(json.loads(out.getvalue())["vector"], np.float32), vector[0])


def test_no_lines(folder, tmp_path):
    (tmp_path / "empty").write_text("")
    for name in ("v.npy", "v.jsonl"):
        arguments = ["embed", str(folder / "model"), str(tmp_path / "empty"), "--out", str(tmp_path / name)]
        assert cli.main(arguments) == 0
    assert len(np.load(tmp_path / "v.npy")) == 0 and (tmp_path / "v.jsonl").read_bytes() == b""


def test_errors_are_one_line_and_leave_no_file(folder, tmp_path, capsys):
    (tmp_path / "bad.txt").write_bytes(b"fine\n\xff\n")
    model, bad = str(folder / "model"), str(tmp_path / "bad.txt")
    for arguments, message in (
        ([model, bad, "--out", str(tmp_path / "v.npy")], "bad.txt', line 2, byte 5: 0xff is not UTF-8"),
        ([model, bad, "--field", "x", "--out", str(tmp_path / "v.npy")], "bad.txt', line 1"),
        ([model, str(folder / "texts.jsonl"), "--field", "no", "--out", str(tmp_path / "v.npy")], "no"),
        ([model, bad, "--out", str(tmp_path / "v.csv")], "--out must end in .npy or .jsonl"),
        ([model, str(tmp_path / "absent")], "absent"),
        ([str(tmp_path), bad], "has no"),
    ):
        assert cli.main(["embed", *arguments]) == 1
        printed = capsys.readouterr().err
        assert message in printed and printed.startswith("plmcore embed: ") and printed.count("\n") == 1
    assert [f.name for f in tmp_path.iterdir()] == ["bad.txt"]
