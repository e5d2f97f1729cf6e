import re

import plmcore as plm
import pytest
from plmcore import cli
from small_models import GPT2, SEQ2SEQ, TEXT, sharp


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("quantize")
    tokenizer = plm.train_tokenizer(texts=[TEXT], kind="byte-bpe", vocab_size=280)
    sharp(dict(GPT2, n_positions=64), "causal-lm", tokenizer).save(path / "model")
    tokenizer = plm.train_tokenizer(texts=[TEXT], kind="wordpiece", vocab_size=120, family="bert")
    sharp(SEQ2SEQ["bart"], "seq2seq-lm", tokenizer).save(path / "bart")
    (path / "text.txt").write_text(TEXT)
    (path / "target.txt").write_text("the cat\nthe dog\n")
    return path


@pytest.mark.parametrize("weights", ["int8", "bfloat16"])
def test_size_speed_and_perplexity(folder, tmp_path, capsys, weights):
    out = tmp_path / "small"
    arguments = ["quantize", folder / "model", "--to", weights, "--out", out, "--text", folder / "text.txt"]
    assert cli.main(list(map(str, arguments))) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == str(out) and plm.load(out).config.extra["quantization_config"]["weights"] == weights
    table = {line[:14].strip(): line[14:].split() for line in lines}
    assert table[""] == ["before", weights]
    assert table["tokens/s"][-2:] == ["greedy", "generation"]
    x, y = (float(n) for n in table["perplexity"][:2])
    assert x == pytest.approx(plm.load(folder / "model").perplexity(TEXT), abs=1e-3)
    assert y == pytest.approx(plm.load(out).perplexity(TEXT), abs=1e-3)
    assert re.fullmatch(r"[+-]\d+\.\d\d", table["perplexity"][2])
    assert table["same choice"][-1] == table["output error"][1] == "%"


def test_the_text_inside_python_and_sources(folder, tmp_path, capsys):
    arguments = ["quantize", folder / "bart", "--out"]
    assert cli.main([*map(str, arguments), str(tmp_path / "a")]) == 0
    assert "perplexity" in capsys.readouterr().out
    pair = ["--text", folder / "target.txt", "--source", folder / "target.txt"]
    assert cli.main(list(map(str, [*arguments, tmp_path / "b", *pair]))) == 0
    assert "perplexity" in capsys.readouterr().out
    assert cli.main([*map(str, arguments), str(tmp_path / "c"), "--source", "x"]) == 2
    assert "--source goes with --text" in capsys.readouterr().err


def test_nothing_but_the_directory(folder, tmp_path, capsys):
    out = str(tmp_path / "small")
    assert cli.main(["quantize", str(folder / "model"), "--out", out, "--head", "base", "--no-compare"]) == 0
    assert capsys.readouterr().out == f"{out}\n" and plm.load(out).head == "base"
    assert cli.main(["info", out]) == 0
    assert re.search(
        r"dtype +int8 \([\d,]+ values\), float32|dtype +float32 \([\d,]+ values\), int8",
        capsys.readouterr().out,
    )


def test_errors(folder, tmp_path, capsys):
    def said(*arguments):
        assert cli.main(["quantize", *map(str, arguments)]) == 1
        return capsys.readouterr().err

    assert "there is no directory" in said(tmp_path / "none", "--out", tmp_path / "x")
    assert said(folder / "model", "--out", folder / "bart").startswith(
        f"plmcore quantize: '{folder / 'bart'}' must be a new"
    )
    assert "No such file" in said(folder / "model", "--out", tmp_path / "x", "--text", tmp_path / "no.txt")
    assert not list(tmp_path.iterdir())
    with pytest.raises(SystemExit):
        cli.main(["quantize", str(folder / "model"), "--to", "int4", "--out", str(tmp_path / "x")])
